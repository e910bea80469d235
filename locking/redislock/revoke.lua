-- Revoke a grant: its next renewal is answered "revoked". May be repeated.
--
-- Behind token.lua, queue.lua, which names the KEYS, and share.lua.
--
-- ARGV  1 the grant's token
--
-- Returns 1 revoked, now or before; 0 another grant holds the lock; -1 the lock is free.
local value = redis.pcall('GET', lock)
if not value then return -1 end
if type(value) == 'table' then -- a hash
  local share = read_share(server_micros())
  if not share then return 0 end
  for owner, held in pairs(share.of) do
    if held.token == ARGV[1] then
      held.revoked = true
      redis.call('HSET', lock, owner, text_of(held))
      return 1
    end
  end
  return share.used > 0 and 0 or -1
end
local _, token, revoked = holder_of(value)
if token ~= ARGV[1] then return 0 end
if not revoked then redis.call('SET', lock, '-' .. value, 'KEEPTTL') end
return 1
