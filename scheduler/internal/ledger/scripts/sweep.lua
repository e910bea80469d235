-- Reads what is overdue in a partition, or waits for somebody. It writes nothing.
-- KEYS[1] due  KEYS[2] leases  KEYS[3] runs  KEYS[4] pending  KEYS[5] waiting  KEYS[6] cancels  KEYS[7] outbox  KEYS[8] followers
-- ARGV[1] cursors until then, ms   ARGV[2] leases that lapsed until then   ARGV[3] runs that may start until then
-- ARGV[4] ARGV[5] ARGV[6] how many of each to pass over, '' for those that are not to be read
-- ARGV[7] most of each   ARGV[8] rows of the outbox to pass over, '' not to read it, nor what is to be cancelled
-- ARGV[9] most rows of the outbox   ARGV[10] '1' to read its newest rows as well
-- Returns {job, cursor, ...}, {lapsed run, ...}, their records, {pending run, ...}, their records, {run, who wants it cancelled, ...},
-- the rows, the newest rows, {job that is followed, its followers, ...} of all rows
-- needs: codec/event
local function upto(key, most, offset, ...)
  if offset == '' then return {} end
  return redis.call('ZRANGEBYSCORE', key, '-inf', most, 'LIMIT', offset, ARGV[7], ...)
end

local function records(key, ids)
  if #ids == 0 then return {} end
  return redis.call('HMGET', key, unpack(ids))
end

local due = upto(KEYS[1], ARGV[1], ARGV[4], 'WITHSCORES')
local lapsed, pending = upto(KEYS[2], ARGV[2], ARGV[5]), upto(KEYS[4], ARGV[3], ARGV[6])
local cancels, rows, newest, followers, seen = {}, {}, {}, {}, {}
if ARGV[8] ~= '' then
  cancels = redis.call('HGETALL', KEYS[6])
  rows = redis.call('ZRANGE', KEYS[7], ARGV[8], ARGV[8] + ARGV[9] - 1)
  if ARGV[10] == '1' then newest = redis.call('ZRANGE', KEYS[7], -ARGV[9], -1) end
end
for _, page in ipairs({rows, newest}) do
  for _, row in ipairs(page) do
    local job = string.match(row, EVENT_UPSTREAM)
    if job and not seen[job] then
      seen[job] = true
      followers[#followers + 1] = job
      followers[#followers + 1] = redis.call('HGET', KEYS[8], job) or ''
    end
  end
end
return {due, lapsed, records(KEYS[3], lapsed), pending, records(KEYS[5], pending), cancels, rows, newest, followers}
