-- Say who holds a lock.
--
-- In front of this text stand token.lua and line.lua, which says what KEYS are.
--
-- Returns {value, left, who, waiters}: the lock's value, '' when nobody holds it;
-- ms until others can have it; who, as the holder said; how many living ones stand in line.
local value = redis.call('GET', lock)
local channel_of, waiting, all = the_line().channel_of, 0, redis.call('HVALS', waiters)
local now = #all > 0 and server_micros() / 1000
for _, text in ipairs(all) do
  if channel_of(text, now) then waiting = waiting + 1 end
end
if not value then return {'', 0, '', waiting} end
return {value, redis.call('PTTL', lock), redis.call('HGET', state, 'h') or '', waiting}
