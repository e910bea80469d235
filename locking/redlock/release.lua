-- Releases a lock at this master, or withdraws a failed attempt. May be repeated: the state keeps
-- the last owner that released.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- ARGV  1 owner   2 its attempts up to this number
--       3 1 for a release, 0 to withdraw   4 life of the state in ms
--
-- Returns
--   1  released, now or before
--   0  another owner holds the lock, or this one after a later attempt
--  -1  the lock is free
--   4  the lock is free here, and this master does not vote
local owner, upto, release, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4]

local value = redis.call('GET', lock)
local holder, _, attempt = holder_of(value)
if holder == owner then
  if attempt > upto then return 0 end
  redis.call('DEL', lock)
  if release then
    redis.call('HSET', state, 'o', owner)
    redis.call('PEXPIRE', state, keep)
  end
  return 1
end
if redis.call('HGET', state, 'o') == owner then return 1 end
if value then return 0 end
return own(server_id()) and -1 or 4
