-- Give a lock back if it is still this owner's, or leave its line. May be
-- repeated: the state remembers who released last.
--
-- In front of this text stand token.lua and line.lua, which says what KEYS are.
--
-- ARGV  1 owner   2 guard in microseconds   3 life of the state in ms   4 patience in ms
--
-- Returns 1 released, now or before; 0 somebody else holds it; -1 nobody does.
local owner, guard, keep, patience = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

local value = redis.call('GET', lock)
if holder_of(value) == owner then
  redis.call('HSET', state, 'o', owner)
  redis.call('PEXPIRE', state, keep)
  -- The lock is written over, not deleted first: a Cluster whose slot is on its
  -- way refuses to write a key that is not there, in the middle of a script.
  local next = redis.call('EXISTS', line) == 1 and hand_over(server_micros(), guard, keep, patience)
  if not next then redis.call('DEL', lock) end
  return 1
end
leave_line(owner)
if redis.call('HGET', state, 'o') == owner then return 1 end
if value then return 0 end
return -1
