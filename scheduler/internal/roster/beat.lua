-- Writes one node's record and drops nodes and sets that were not seen for too long. Returns the
-- rest, and whether the node's name is drained. A drained name drains from its very first beat.
--
-- KEYS[1] roster    hash: node ID -> record
-- KEYS[2] seen      sorted set: node ID -> last beat, ms
-- KEYS[3] sets      hash: digest -> set of named digests
-- KEYS[4] setsSeen  sorted set: digest -> last beat or announcement that named it, ms
-- KEYS[5] drains    hash: name -> author, time and reason of its drain; only read here
-- KEYS[6] control   hash: field epoch counts promotions of generations, incarnation is another one each time that the namespace was
--                   made; only read here
--
-- ARGV[1] id        the node that beats
-- ARGV[2] record    its record; never decoded here
-- ARGV[3] ttl       ms after which a node that was not seen is dropped
-- ARGV[4] set       digest of the set the node holds, or ''
-- ARGV[5] keep      ms after which a set that was not named is dropped
-- ARGV[6] limit     bytes; a longer record is returned as ''
-- ARGV[7] idle      ms after the last beat after which the keys expire; a drain does not
-- ARGV[8] name      the node's name, or ''
-- ARGV[9] cordoned  its record if that name is drained; never decoded here
--
-- Returns {now, known, drain, epoch, source, id, seen, record, id, seen, record, ...}:
--   now    Redis' clock, ms
--   known  1: the set is stored (or none was named); 0: it is not, announce it
--   drain  author, time and reason of the name's drain; '' for none
--   epoch  how many promotions there were, as text; '' before the first
--   source id of the server and the namespace's incarnation: another text when the roster may have lost nodes
--   seen   ms of Redis' clock, as text

local roster, seen, sets, setsSeen, drains, control = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local id, record, ttl, set = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local keep, limit, idle = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local name, cordoned = ARGV[8], ARGV[9]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- '..' keeps 14 digits and may write an exponent; this writes whole milliseconds.
local function text(n)
  return string.format('%.0f', n)
end

-- Redis' clock stepped back: no node can have been seen later than now.
local function clamp(key)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '(' .. text(now), '+inf')) do
    redis.call('ZADD', key, text(now), member)
  end
end

-- Moves all scores on by some ms, but not beyond now.
local function shift(key, by)
  local rows = redis.call('ZRANGEBYSCORE', key, 0, text(now), 'WITHSCORES')
  for i = 1, #rows, 2 do
    redis.call('ZADD', key, text(math.min(rows[i + 1] + by, now)), rows[i])
  end
end

local function drop(hash, zset, age)
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', zset, '-inf', text(now - age))) do
    redis.call('HDEL', hash, member)
    redis.call('ZREM', zset, member)
  end
end

clamp(seen)
clamp(setsSeen)

-- Between two beats of any node at most half a ttl counts. More means that Redis was away, that its
-- clock stepped, or that no node was running; no single node is to be dropped for it.
local last = redis.call('ZREVRANGEBYSCORE', seen, text(now), 0, 'WITHSCORES', 'LIMIT', 0, 1)[2]
if last and now - last > ttl / 2 then
  local by = now - last - math.floor(ttl / 2)
  shift(seen, by)
  shift(setsSeen, by)
end

local drain = redis.call('HGET', drains, name) or nil
if drain and (drain == '' or #drain > limit) then
  drain = '?' -- unreadable, and a drain all the same
end

redis.call('HSET', roster, id, drain and cordoned or record)
redis.call('ZADD', seen, text(now), id)

local known = 1
if set ~= '' then
  known = redis.call('HEXISTS', sets, set)
  if known == 1 then
    redis.call('ZADD', setsSeen, text(now), set)
  end
end

drop(roster, seen, ttl)
drop(sets, setsSeen, keep)

local at = {}
local rows = redis.call('ZRANGE', seen, 0, -1, 'WITHSCORES')
for i = 1, #rows, 2 do
  at[rows[i]] = tonumber(rows[i + 1])
end

local noted = redis.call('HMGET', control, 'epoch', 'incarnation')
local out = {now, known, drain or '', noted[1] or '', server_id() .. '/' .. (noted[2] or '')}
rows = redis.call('HGETALL', roster)
for i = 1, #rows, 2 do
  local member, raw = rows[i], rows[i + 1]
  if not at[member] then -- a record without a time would stay for ever: its time begins now
    redis.call('ZADD', seen, text(now), member)
  end
  out[#out + 1] = member
  out[#out + 1] = text(at[member] or now)
  out[#out + 1] = #raw <= limit and raw or ''
end

for _, key in ipairs({roster, seen, sets, setsSeen}) do
  redis.call('PEXPIRE', key, idle)
end
return out
