-- Let a master vote that has lost its state. May be repeated. If the loss was not known,
-- it is known from now on.
--
-- Behind token.lua.
--
-- KEYS  1 node, see head.lua
--
-- ARGV  1 the server id at the answer about the loss   2 a token that its next ones exceed
--       3 for how many ms the loss must be known, -1 to let it vote at once
--       4 the longest ttl of any client, in ms
--
-- Returns 1 it votes, now or before; 0 it was restarted since; -n it is too early by
-- n ms.
local node = KEYS[1]
local floor, need, longest = ARGV[2], tonumber(ARGV[3]), ARGV[4]

local rid = server_id()
if rid ~= ARGV[1] then return 0 end
local known = redis.call('HMGET', node, 'r', 'h', 'm', 'q')
if known[1] == rid then return 1 end
if need >= 0 then
  local since, of = string.match(known[4] or '', '^(%d+):(.*)$')
  local now = math.floor(server_micros() / 1000)
  if of ~= rid then
    since = now
    redis.call('HSET', node, 'q', string.format('%.0f', now) .. ':' .. rid)
  end
  local left = need - (now - tonumber(since))
  if left > 0 then return -left end
end
redis.call('HSET', node, 'r', rid)
if (tonumber(known[2] or 0) or 0) < tonumber(floor) then redis.call('HSET', node, 'h', floor) end
if (tonumber(known[3] or 0) or 0) < tonumber(longest) then redis.call('HSET', node, 'm', longest) end
redis.call('HDEL', node, 'q')
return 1
