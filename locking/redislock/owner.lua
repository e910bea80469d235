-- Say who holds a lock.
--
-- In front of this text stand token.lua and line.lua, which says what KEYS are.
--
-- Returns {value, left, who, waiters}: the lock's value, '' when nobody holds it;
-- ms until others can have it; who, as the holder said; how many stand in line.
local value = redis.call('GET', lock)
local waiting = redis.call('ZCARD', line)
if not value then return {'', 0, '', waiting} end
return {value, redis.call('PTTL', lock), redis.call('HGET', state, 'h') or '', waiting}
