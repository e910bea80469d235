-- Say what a master knows of itself.
--
-- In front of this text stands token.lua.
--
-- KEYS  1 node, see head.lua
--
-- Returns {id, votes, largest, clock, longest}: votes is 1 or 0, largest the
-- largest token it knows, clock its own in microseconds, longest the longest ttl
-- that any client may ask for, in ms.
local node = KEYS[1]
local rid = server_id()
local vote = 0
if redis.call('HGET', node, 'r') == rid then vote = 1 end
return {rid, vote, redis.call('HGET', node, 'h') or '0', string.format('%.0f', server_micros()),
  tonumber(redis.call('HGET', node, 'm') or 0)}
