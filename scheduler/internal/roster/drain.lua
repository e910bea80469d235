-- Notes that a name is drained, until it is resumed.
--
-- KEYS[1] drains   hash: name -> record, VERSION|MS|AUTHOR|REASON
--
-- ARGV[1] name
-- ARGV[2] version  of the record's format
-- ARGV[3] who      AUTHOR|REASON; the author has no bar
-- ARGV[4] most     how many names may be drained
--
-- Returns
--    1  noted, in the place of another author and reason if there were any
--    0  nothing is changed: this was noted before, or a newer format lies there
--   -1  nothing is changed: that many names are drained

local drains = KEYS[1]
local name, version, who, most = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

local stored = redis.call('HGET', drains, name)
if stored then
  -- Every format begins with its version.
  local v = tonumber(string.match(stored, '^(%d+)|') or 0)
  if v > version or v == version and string.match(stored, '^%d+|%d+|(.*)$') == who then
    return 0
  end
elseif redis.call('HLEN', drains) >= most then
  return -1
end

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', drains, name, string.format('%d|%.0f|%s', version, now, who))
return 1
