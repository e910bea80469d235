-- Give a lock back, if it is still this owner's. May be repeated: the token
-- state remembers who released last.
--
-- KEYS  1 the lock, string "token:owner"   2 its token state, hash t r o
-- ARGV  1 owner   2 life of the token state in ms
--
-- Returns 1 released, now or before; 0 somebody else holds it; -1 nobody does.
local lock, state, owner, keep = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

local value = redis.call('GET', lock)
local holder = value and string.match(value, '^%d+:(.*)$')
if holder == owner then
  redis.call('DEL', lock)
  redis.call('HSET', state, 'o', owner)
  redis.call('PEXPIRE', state, keep)
  return 1
end
if redis.call('HGET', state, 'o') == owner then return 1 end
if value then return 0 end
return -1
