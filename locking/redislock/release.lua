-- Give a lock back if it is still this owner's, or leave its line. May be
-- repeated: the state remembers the last eight who released.
--
-- In front of this text stand token.lua and line.lua, which says what KEYS are.
--
-- ARGV  1 owner   2 guard in microseconds   3 life of the state in ms   4 patience in ms
--
-- Returns 1 released, now or before; 0 somebody else holds it; -1 nobody does.
local owner, guard, keep, patience = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

-- remember(): protected, because a server without memory refuses to write more
-- and must take the lock back all the same.
local function remember()
  local list = owner
  for former in string.gmatch(redis.call('HGET', state, 'o') or '', '[^\n]+') do
    local _, count = string.gsub(list, '\n', '')
    if count == 7 then break end
    list = list .. '\n' .. former
  end
  redis.pcall('HSET', state, 'o', list)
  if redis.call('PTTL', state) < keep then redis.pcall('PEXPIRE', state, keep) end
end

local value = redis.call('GET', lock)
if holder_of(value) == owner then
  remember()
  -- The lock is written over, not deleted first: a Cluster whose slot is on its
  -- way refuses to write a key that is not there, in the middle of a script.
  local done, next = true, nil
  if redis.call('EXISTS', line) == 1 then
    done, next = pcall(hand_over, server_micros(), guard, keep, patience)
  end
  if not done or not next then redis.call('DEL', lock) end
  return 1
end
leave_line(owner)
if is_among(owner, redis.call('HGET', state, 'o')) then return 1 end
if value then return 0 end
return -1
