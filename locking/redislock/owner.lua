-- Return who holds a lock.
--
-- Behind token.lua and queue.lua, which names the KEYS.
--
-- Returns {value, left, who, waiters}: the lock's value, '' when it is free; ms until
-- others can have it; the holder's text; the number of living waiters.
local value = redis.call('GET', lock)
local channel_of, waiting, all = the_queue().channel_of, 0, redis.call('HVALS', waiters)
local now = #all > 0 and server_micros() / 1000
for _, text in ipairs(all) do
  if channel_of(text, now) then waiting = waiting + 1 end
end
if not value then return {'', 0, '', waiting} end
return {value, redis.call('PTTL', lock), redis.call('HGET', state, 'h') or '', waiting}
