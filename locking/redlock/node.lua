-- Return a master's own state.
--
-- Behind token.lua.
--
-- KEYS  1 node, see head.lua
--
-- Returns {id, votes, largest, clock, longest}: votes is 1 or 0, largest its largest
-- token, clock its clock in microseconds, longest the longest ttl of any client in ms.
local node = KEYS[1]
local rid = server_id()
local vote = 0
if redis.call('HGET', node, 'r') == rid then vote = 1 end
return {rid, vote, redis.call('HGET', node, 'h') or '0', string.format('%.0f', server_micros()),
  tonumber(redis.call('HGET', node, 'm') or 0)}
