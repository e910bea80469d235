-- Return a master's own state. A loss of the state is recorded when it is first seen. With
-- arguments the master votes from now on, if it still has this very loss. May be repeated.
--
-- Behind token.lua.
--
-- KEYS  1 node, see head.lua
--
-- ARGV  1 the loss, as it was returned   2 a token that the next ones exceed
--       3 the longest ttl of any client, in ms; or none of them
--
-- Returns {id, loss, known, largest, clock, longest}: loss is '' when it votes, else "ms:id",
-- since when; known is for how many ms that has been known, largest its largest token, clock
-- its clock in microseconds, longest the longest ttl of any client in ms.
local node, now, rid = KEYS[1], server_micros(), server_id()
local function digits(n) return string.format('%.0f', n) end

local own = redis.call('HMGET', node, 'r', 'h', 'm', 'q')
local largest, longest, loss, known = tonumber(own[2] or 0), tonumber(own[3] or 0), '', 0
if own[1] ~= rid then
  local since, id = string.match(own[4] or '', '^(%d+):(.*)$')
  if id ~= rid then since = digits(math.floor(now / 1000)) end
  loss, known = since .. ':' .. rid, math.floor(now / 1000) - tonumber(since)
  if loss == ARGV[1] then
    largest, longest = math.max(largest, tonumber(ARGV[2])), math.max(longest, tonumber(ARGV[3]))
    redis.call('HSET', node, 'r', rid, 'h', digits(largest), 'm', digits(longest))
    redis.call('HDEL', node, 'q')
    loss = ''
  else
    redis.call('HSET', node, 'q', loss)
  end
end
return {rid, loss, known, largest, now, longest}
