-- Stores one set of named digests under its digest, once, and marks it as used now.
--
-- KEYS[1] sets      hash: digest -> set of named digests
-- KEYS[2] setsSeen  sorted set: digest -> last beat or announcement that named it, ms
--
-- ARGV[1] digest    of the set
-- ARGV[2] record    the set
-- ARGV[3] version   of the record's format
-- ARGV[4] idle      ms after the last beat after which the keys expire
--
-- Returns
--    1  stored (it was absent or damaged)
--    0  the same record was there already
--   -1  a newer format is stored under this digest, and stays

local sets, setsSeen = KEYS[1], KEYS[2]
local digest, record, version, idle = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local stored = redis.call('HGET', sets, digest)
local answer = 1
if stored == record then
  answer = 0
elseif stored then
  -- Every format begins with its version, which is read without decoding the rest.
  local v = string.match(stored, '^{"v":(%d+)[,}]')
  if v and tonumber(v) > version then
    answer = -1
  end
end
if answer == 1 then
  redis.call('HSET', sets, digest, record)
end

redis.call('ZADD', setsSeen, string.format('%.0f', now), digest)
redis.call('PEXPIRE', sets, idle)
redis.call('PEXPIRE', setsSeen, idle)
return answer
