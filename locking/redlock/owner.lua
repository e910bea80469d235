-- Return who holds a lock at this master.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- Returns {value, left, who, votes}: the lock's value, '' when it is free; ms until
-- others can have it; the holder's text; 1, or 0 when this master has lost its state.
local vote = 0
if votes(server_id()) then vote = 1 end
local value = redis.call('GET', lock)
if not value then return {'', 0, '', vote} end
return {value, redis.call('PTTL', lock), redis.call('HGET', state, 'h') or '', vote}
