-- Revoke a grant: its next renewal is answered "revoked". May be repeated.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- ARGV  1 the grant's token
--
-- Returns
--   1  revoked, now or before
--   0  another grant holds the lock
--  -1  nobody does
--   4  nobody does, and this master has lost its state
local value = redis.call('GET', lock)
if not value then
  if votes(server_id()) then return -1 end
  return 4
end
local holder, token, _, revoked = holder_of(value)
if not holder or token ~= tonumber(ARGV[1]) then return 0 end
if not revoked then redis.call('SET', lock, '-' .. value, 'KEEPTTL') end
return 1
