-- Begins a backfill of a job. Only the backfill's record is written: nodes put its runs into
-- pending, see feed.lua.
-- keys: jobs backfills backfilled gate
-- Arguments: backfillArgs in backfill.go.
-- Returns 'closed|state|move|words', 'under way|id' (another backfill of the job), or one word:
-- begun (also when repeated), unknown (no such job), stale (the job has another definition), many
-- (the partition has as many backfills as are allowed), foreign.
-- needs: lib/args lib/base lib/gate codec/entry codec/backfill
local job = args.job
local shut = closed(k.gate)
-- guard:backfill-gate P7 a partition that a move has closed begins no backfill
if shut then return 'closed|' .. shut end
local us, ms = clock(args.now, args.skew)
local text = redis.call('HGET', k.jobs, job)
if not text then return 'unknown' end
local e = entry_of(text)
if not e then return 'foreign' end
if e.digest ~= args.digest then return 'stale' end
local had, last = redis.call('HGET', k.backfills, job), backfill_of(redis.call('HGET', k.backfilled, job))
local b = backfill_of(had)
if had and not b then return 'foreign' end
-- guard:backfill-begun P1 a request that is repeated is one backfill
if b and b.id == args.id or last and last.id == args.id then return 'begun' end
if b then return 'under way|' .. b.id end
if redis.call('HLEN', k.backfills) >= args.most then return 'many' end
redis.call('HSET', k.backfills, job, backfill_text({id = args.id, job = job, state = 'going', from = args.from, to = args.to, next = args.from,
  parallel = int(args.parallel), total = args.total, counts = '', going = '', began = int(ms), looked = int(ms), ended = '', author = args.author,
  by = '', reason = ''}))
return 'begun'
