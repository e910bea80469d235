-- Revokes a grant: its next renewal is answered "revoked". May be repeated.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- ARGV  1 the grant's token
--
-- Returns
--   1  revoked, now or before
--   0  another grant holds the lock
--  -1  the lock is free
--   4  the lock is free here, and this master does not vote
local value = redis.call('GET', lock)
if not value then return own(server_id()) and -1 or 4 end
local holder, token, _, revoked = holder_of(value)
if not holder or token ~= tonumber(ARGV[1]) then return 0 end
if not revoked then redis.call('SET', lock, '-' .. value, 'KEEPTTL') end
return 1
