-- Puts one run by hand into pending. Its id is the caller's, so a repeated request is one run. The
-- cursor stays.
-- keys: jobs runs pending waiting unique history gate
-- Arguments: triggerArgs in trigger.go, and as bytes the payload.
-- Returns 'closed|state|move|words', or one word: queued (also when repeated), unknown (no such
-- job), full, large (the payload, while so many runs are due), 'unique full' (too many remembered
-- ids), foreign.
-- needs: lib/args lib/base lib/gate lib/rows lib/waiting codec/entry codec/pending
local job, id = args.job, args.run
local shut = closed(k.gate)
-- guard:trigger-gate P7 a partition that a move has closed takes no run by hand
if shut then return 'closed|' .. shut end
local us, ms = clock(args.now, args.skew)
local text = redis.call('HGET', k.jobs, job)
if not text then return 'unknown' end
local e = entry_of(text)
if not e then return 'foreign' end
-- guard:trigger-once P1 a repeated request is one run
if under_way(k.runs, k.waiting, {id, unpack(args.successors)}) or find_row(k.history, id, true) then return 'queued' end
if args.remember then
  redis.call('ZREMRANGEBYSCORE', k.unique, '-inf', int(ms))
  if redis.call('ZSCORE', k.unique, id) then return 'queued' end
  if redis.call('ZCARD', k.unique) >= args.many then return 'unique full' end
end
if redis.call('ZCARD', k.pending) >= args.most then return 'full' end
if #bytes > 1024 and redis.call('ZCOUNT', k.pending, '-inf', int(ms)) >= 256 then return 'large' end -- sweeps read every due run
local at = args.at or int(ms)
redis.call('HSET', k.waiting, id, pending_text({job = job, tick = at, shard = '0', shards = '1', attempt = '1',
  prev = '', next = '', trigger = 'manual', request = id, at = at, holds = '', of = '', param = '', payload = bytes}))
redis.call('ZADD', k.pending, at, id)
if args.remember then redis.call('ZADD', k.unique, int(math.max(ms, at) + args.remember), id) end
return 'queued'
