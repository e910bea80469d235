-- Renews a lock for another ttl at this master, if this grant holds it. A lock counts also on a
-- master that does not vote, because no other owner can have it there.
--
-- With a c from its earlier answer, the script sets a lock that is free here, unless a token was
-- promised here in between. A majority must have renewed in between. May be repeated.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- ARGV  1 owner   2 token   3 ttl and delay in ms   4 life of the state in ms
--       5 number of the grant: a late withdrawal of an earlier attempt of the owner does not
--         take the lock   6 c, or none
--
-- Returns
--   1  renewed, or set
--   0  another owner holds it
--  -c  the lock is free; c is the largest token of the lock here
--   2  the owner holds it with another token
--   3  it was revoked; it stays until its holder releases it
--   4  the lock is free here, and this master does not vote
local owner, token, px, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]
local number = tonumber(ARGV[5])

local value = redis.call('GET', lock)
if not value then
  local rid = server_id()
  local votes, largest = own(rid)
  if not votes then return 4 end
  local c, released = known(rid, largest)
  if c ~= tonumber(ARGV[6] or 0) or released == owner then return -c end
  hold(rid, token, number, owner, px, keep, c, largest)
  return 1
end
local holder, has, attempt, revoked = holder_of(value)
if holder ~= owner then return 0 end
if has ~= token then return 2 end
if revoked then return 3 end
redis.call('PEXPIRE', state, keep) -- before SET, which a server without memory allows to a script that has written
if number <= attempt then return redis.call('PEXPIRE', lock, px) end
redis.call('SET', lock, ARGV[2] .. ':' .. ARGV[5] .. ':' .. owner, 'PX', px)
return 1
