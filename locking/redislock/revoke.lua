-- Revoke a grant: its next renewal is answered "revoked". May be repeated.
--
-- Behind token.lua and queue.lua, which names the KEYS.
--
-- ARGV  1 the grant's token
--
-- Returns 1 revoked, now or before; 0 another grant holds the lock; -1 nobody does.
local value = redis.call('GET', lock)
if not value then return -1 end
local _, token, revoked = holder_of(value)
if token ~= ARGV[1] then return 0 end
if not revoked then redis.call('SET', lock, '-' .. value, 'KEEPTTL') end
return 1
