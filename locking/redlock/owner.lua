-- Returns the holder of a lock at this master.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- Returns {votes, owner, token, revoked, left, who}: votes is 1, or 0 when the lock is free here
-- and this master does not vote; owner is '' when it is free; revoked is 1 or 0; left is in ms
-- until another owner can have it; who is the holder's text.
local value = redis.call('GET', lock)
if not value then return {own(server_id()) and 1 or 0, '', 0, 0, 0, ''} end
local owner, token, _, revoked = holder_of(value)
return {1, owner or value, token, revoked and 1 or 0, redis.call('PTTL', lock), redis.call('HGET', state, 'h') or ''}
