-- Cancels a backfill: no tick of it gets a run from now on. The caller ends the runs that have not
-- ended.
-- keys: backfills gate
-- Arguments: unfeedArgs in backfill.go.
-- Returns 'closed|state|move|words', '1|...' (the backfill as it is now), or one word: none (no
-- backfill of the job is under way), foreign.
-- needs: lib/args lib/gate codec/backfill
local shut = closed(k.gate)
-- guard:unfeed-gate P7 a partition that a move has closed cancels no backfill
if shut then return 'closed|' .. shut end
local text = redis.call('HGET', k.backfills, args.job)
if not text then return 'none' end
local b = backfill_of(text)
if not b then return 'foreign' end
if b.state == 'cancelled' then return text end
b.state, b.next, b.by, b.reason = 'cancelled', '', args.author, args.reason
text = backfill_text(b)
redis.call('HSET', k.backfills, args.job, text)
return text
