-- Give a lock back if it is still this owner's, or leave its line. May be
-- repeated: the state remembers the last eight who released.
--
-- In front of this text stand token.lua and line.lua, which says what KEYS are.
--
-- ARGV  1 owner
--
-- Returns 1 released, now or before; 0 somebody else holds it; -1 nobody does.
local owner = ARGV[1]

local value = redis.call('GET', lock)
local mine = value
-- guard:lock-release-owner P4 only its owner gives a lock back
if holder_of(value) ~= owner then mine = false end
if mine then
  local last = redis.call('HMGET', state, 'o', 'q', 't')
  local enders, ends = owner, 0 -- the last who released, this one first, eight in all
  if last[1] then
    enders = owner .. '\n' .. last[1]
    for _ = 1, 8 do ends = ends and string.find(enders, '\n', ends + 1, true) end
    if ends then enders = string.sub(enders, 1, ends - 1) end
  end
  -- Protected, because a server without memory refuses to write more and must
  -- take the lock back all the same.
  redis.pcall('HSET', state, 'o', enders)
  if not last[3] then redis.pcall('PEXPIRE', state, keep) end -- it was lost under the lock
  -- The lock is written over, not deleted first: a Cluster whose slot is on its
  -- way refuses to write a key that is not there, in the middle of a script.
  local done, next = true, nil
  if last[2] or not last[3] then
    local now = server_micros()
    if has_line(last[2], last[3], now) then done, next = pcall(the_line().hand_over, now) end
  end
  if not done or not next then redis.call('DEL', lock) end
  return 1
end
the_line().leave(owner)
if is_among(owner, redis.call('HGET', state, 'o')) then return 1 end
if value then return 0 end
return -1
