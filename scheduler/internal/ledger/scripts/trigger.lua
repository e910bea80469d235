-- Puts one run by hand into pending. It is named by the caller's run id, so a repeated request
-- is one run. The cursor is not touched.
-- KEYS[1] jobs  KEYS[2] runs  KEYS[3] pending  KEYS[4] waiting  KEYS[5] unique  KEYS[6] history of the job  and last the partition's gate
-- Returns 'closed|state|move|words', or one word: queued (also when repeated), unknown (no such job), full, large (the payload,
-- while so many runs are due), crowded (too many remembered ids), foreign.
-- needs: lib/base lib/gate lib/rows lib/waiting codec/entry codec/pending
-- ARGV, written by gen from verbs.go:
--   job        the job's name
--   id         id of the run to be
--   most       most pending runs in this partition
--   at         when to run, ms, '' for now
--   remember   for how long the id is remembered, ms, '' for as long as the history has it
--   many       most remembered ids
--   payload    what the function is given
--   then ids: the ids under which the run may go on
local job, id, most, at, remember, many, payload =
  ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7]
local ids = {unpack(ARGV, 8)}
-- end of ARGV
local shut = closed(KEYS[#KEYS])
if shut then return 'closed|' .. shut end
local us, ms = clock()
local text = redis.call('HGET', KEYS[1], job)
if not text then return 'unknown' end
local e = entry_of(text)
if not e then return 'foreign' end
-- guard:trigger-once P1 a request that is repeated is one run
if under_way(KEYS[2], KEYS[4], {id, unpack(ids)}) or find_row(KEYS[6], id, true) then return 'queued' end
if remember ~= '' then
  redis.call('ZREMRANGEBYSCORE', KEYS[5], '-inf', int(ms))
  if redis.call('ZSCORE', KEYS[5], id) then return 'queued' end
  if redis.call('ZCARD', KEYS[5]) >= many then return 'crowded' end
end
if redis.call('ZCARD', KEYS[3]) >= most then return 'full' end
if #payload > 1024 and redis.call('ZCOUNT', KEYS[3], '-inf', int(ms)) >= 256 then return 'large' end -- sweeps read all that is due
if at == '' then at = int(ms) end
redis.call('HSET', KEYS[4], id, pending_text({job = job, tick = at, shard = '0', shards = '1', attempt = '1',
  prev = '', next = '', trigger = 'manual', request = id, at = at, holds = '', of = '', param = '', payload = payload}))
redis.call('ZADD', KEYS[3], at, id)
if remember ~= '' then redis.call('ZADD', KEYS[5], int(math.max(ms, at) + remember), id) end
return 'queued'
