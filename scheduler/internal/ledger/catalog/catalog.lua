-- Changes the catalog: stores jobs that are made at run time, deletes them, or restores jobs that
-- Redis has lost.
-- keys: catalog catalogat catalogdropped
-- Arguments: catalogArgs in catalog.go.
-- Returns for each item a word and a version:
--   done       the job is stored or deleted as wanted, with this version
--   same       the very same job is stored, with this version: nothing has changed
--   differs    the stored job has this version and not the expected one; '0' when no job is stored
--   newer      the job was stored or deleted with this later version
-- needs: lib/args lib/base
local us, ms = clock(args.now, args.skew)

-- The version of a change: Redis' time, and above every version in the catalog.
local function fresh()
  local last = 0
  for _, key in ipairs({k.catalogat, k.catalogdropped}) do
    last = math.max(last, tonumber(redis.call('ZREVRANGE', key, 0, 0, 'WITHSCORES')[2]) or 0)
  end
  return math.max(ms, last + 1)
end

local function drop(job, version)
  redis.call('HDEL', k.catalog, job)
  redis.call('ZREM', k.catalogat, job)
  redis.call('ZADD', k.catalogdropped, int(version), job)
  redis.call('ZREMRANGEBYSCORE', k.catalogdropped, '-inf', int(ms - args.keep))
  if redis.call('ZCARD', k.catalogdropped) > args.most then
    redis.call('ZREM', k.catalogdropped, redis.call('ZRANGE', k.catalogdropped, 0, 0)[1])
  end
end

local function set(job, version, text)
  redis.call('HSET', k.catalog, job, '1|' .. int(version) .. '|' .. text)
  redis.call('ZREM', k.catalogdropped, job)
  redis.call('ZADD', k.catalogat, int(version), job)
end

-- Whether a job is stored with this very text.
local function is_stored(job, version, text)
  -- guard:put-same P8 a put of the stored text changes nothing
  if text ~= '' and redis.call('HGET', k.catalog, job) == '1|' .. version .. '|' .. text then return true end
  return false
end

local version, out = fresh(), {}
for _, c in ipairs(args.items) do
  local is = redis.call('ZSCORE', k.catalogat, c.job) or '0'
  local gone = redis.call('ZSCORE', k.catalogdropped, c.job) or '0'
  local word, at = 'done', tonumber(c.version) or 0
  if at > 0 then -- restoring a known version, which Redis may have lost
    local latest = math.max(tonumber(is), tonumber(gone))
    if latest > at then word, at = 'newer', latest
    elseif latest < at then set(c.job, at, c.text) end
  elseif c.was ~= '' and tonumber(c.was) ~= tonumber(is) then
    -- the job was changed since the caller read its version: no overwrite
    word, at = 'differs', tonumber(is)
  elseif is_stored(c.job, is, c.text) then
    word, at = 'same', tonumber(is)
  else
    at = version
    version = version + 1
    if c.text ~= '' then set(c.job, at, c.text) elseif is ~= '0' then drop(c.job, at) end
  end
  out[#out + 1], out[#out + 2] = word, int(at)
end
return out
