-- Renew a lock for another ttl at this master, if this grant holds it. May be repeated.
-- A lock counts also on a master that does not vote, because nobody else can have it there.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- ARGV  1 owner   2 token   3 ttl and delay in ms   4 life of the state in ms
--
-- Returns
--   1  renewed
--   0  another owner holds it
--  -1  nobody does
--   2  the owner holds it with another token
--   3  it was revoked; it stays until its holder releases it
--   4  nobody does, and this master has lost its state
local owner, token, px, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local value = redis.call('GET', lock)
if not value then
  if votes(server_id()) then return -1 end
  return 4
end
local holder, own, _, revoked = holder_of(value)
if holder ~= owner then return 0 end
if own ~= token then return 2 end
if revoked then return 3 end
redis.call('PEXPIRE', state, keep)
return redis.call('PEXPIRE', lock, px)
