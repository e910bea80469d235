-- Puts one run by hand into pending. It is named by the caller's run id, so a repeated request
-- is one run. The cursor is not touched.
-- KEYS[1] jobs  KEYS[2] runs  KEYS[3] pending  KEYS[4] waiting  KEYS[5] history of the job
-- ARGV[1] job  ARGV[2] run  ARGV[3] most pending runs in this partition  ARGV[4] payload
-- Returns one word: queued (also when repeated), unknown (no such job), full, foreign.
local job, id, most, payload = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local us, ms = clock()
local text = redis.call('HGET', KEYS[1], job)
if not text then return 'unknown' end
local e = entry_of(text)
if not e then return 'foreign' end
-- A run that was handed back goes on under a fresh id and holds the job; it keeps the id asked for.
local holder = run_of(redis.call('HGET', KEYS[2], e.open)) or pending_of(redis.call('HGET', KEYS[4], e.open))
if (holder and holder.request == id) or redis.call('HEXISTS', KEYS[4], id) == 1 or redis.call('HEXISTS', KEYS[2], id) == 1
  or find_row(KEYS[5], id) then
  return 'queued'
end
if redis.call('ZCARD', KEYS[3]) >= most then return 'full' end
redis.call('HSET', KEYS[4], id, pending_text({job = job, tick = int(ms), shard = '0', shards = '1', attempt = '1',
  prev = '', next = '', trigger = 'manual', request = id, at = int(ms), payload = payload}))
redis.call('ZADD', KEYS[3], int(ms), id)
return 'queued'
