-- Releases a lock that this owner holds, or its place in the queue. May be repeated: the state
-- keeps the last eight owners that released.
--
-- Behind token.lua and queue.lua, which names the KEYS.
--
-- ARGV  1 owner
--
-- Returns 1 released, now or before; 0 another owner holds the lock; -1 the lock is free.
local owner = ARGV[1]

local value = redis.call('GET', lock)
local mine = value
-- guard:lock-release-owner P4 only its owner releases a lock
if holder_of(value) ~= owner then mine = false end
if mine then
  local last = redis.call('HMGET', state, 'o', 'q', 't')
  -- pcall, because a server without memory refuses these writes, and the lock must be
  -- released all the same.
  redis.pcall('HSET', state, 'o', among(owner, last[1]))
  if not last[3] then redis.pcall('PEXPIRE', state, keep) end -- the state was lost while the lock was held
  -- The lock is overwritten, not deleted first: a Cluster that moves the slot refuses
  -- to write a missing key in the middle of a script.
  local done, next = true, nil
  if last[2] then
    local now = server_micros()
    if has_queue(last[2], now) then done, next = pcall(the_queue().hand_over, now) end
  end
  if not done or not next then redis.call('DEL', lock) end
  return 1
end
the_queue().leave(owner)
if is_among(owner, redis.call('HGET', state, 'o')) then return 1 end
if value then return 0 end
return -1
