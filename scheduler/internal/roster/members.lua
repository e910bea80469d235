-- Returns every record of the roster and changes nothing.
--
-- KEYS[1] roster  hash: node ID -> record
-- KEYS[2] seen    sorted set: node ID -> last beat, ms
--
-- ARGV[1] limit   bytes; a longer record is returned as ''
--
-- Returns {now, 1, '', '', '', id, seen, record, id, seen, record, ...}, as beat.lua does:
--   now   Redis' clock, ms
--   seen  ms of Redis' clock, as text; '0' for a record without a time

local roster, seen = KEYS[1], KEYS[2]
local limit = tonumber(ARGV[1])

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local at = {}
local rows = redis.call('ZRANGE', seen, 0, -1, 'WITHSCORES')
for i = 1, #rows, 2 do
  at[rows[i]] = tonumber(rows[i + 1])
end

local out = {now, 1, '', '', ''}
rows = redis.call('HGETALL', roster)
for i = 1, #rows, 2 do
  local member, raw = rows[i], rows[i + 1]
  out[#out + 1] = member
  out[#out + 1] = string.format('%.0f', at[member] or 0)
  out[#out + 1] = #raw <= limit and raw or ''
end
return out
