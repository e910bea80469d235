-- Gives up a follower's undecided ticks that are older than history.keep_for, or too many: such a
-- tick is recorded as missed. The job follows several jobs.
-- keys: jobs kept recent outbox followers joins history gate
-- Arguments: giveUpArgs in follow.go.
-- Returns 'closed|state|move|words', or one word: done, unknown (no such job), full (the outbox has
-- no room for the job's own followers), foreign.
-- needs: lib/args lib/gate lib/joined codec/entry
local job = args.job
local shut = closed(k.gate)
-- guard:giveup-gate P7 a partition that a move has closed records nothing of a join
if shut then return 'closed|' .. shut end
local us, ms = clock(args.now, args.skew)
local text = redis.call('HGET', k.jobs, job)
if not text then return 'unknown' end
local e = entry_of(text)
if not e or type(redis.pcall('LLEN', k.history)) ~= 'number' then return 'foreign' end
if redis.call('HEXISTS', k.followers, job) == 1 and redis.call('ZCARD', k.outbox) >= 10000 then return 'full' end
local list, some = give_up_old(k, k.history, job, e, JOINS_MAX, ms, args.keep, args.keep_for)
if not list then return 'foreign' end
if some then
  if #list == 0 then redis.call('HDEL', k.joins, job) else redis.call('HSET', k.joins, job, table.concat(list, ',')) end
  redis.call('HSET', k.jobs, job, entry_text(e))
end
return 'done'
