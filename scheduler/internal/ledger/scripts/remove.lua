-- Removes a job and all that is stored of it, but for its definitions, which tidy takes away when nobody announces them any
-- more, and for runs in flight: there must be none. Of its unique keys those are forgotten whose runs wait or stand in the history.
-- keys: jobs pauses due runs pending waiting kept followers joins history cancels unique anew backfills backfilled gate
-- Arguments: removeArgs in operate.go.
-- Returns 'closed|state|move|words', or one word: removed, held, unknown, foreign (a record of it that waits cannot be read),
-- used (it has another definition than the given one, or a history and is to have none).
-- needs: lib/args lib/gate lib/waiting lib/joins codec/entry codec/row codec/run codec/pending codec/tick
local shut = closed(k.gate)
-- guard:remove-gate P7 a partition that a move has closed removes nothing
if shut then return 'closed|' .. shut end
local job = args.job
if redis.call('HEXISTS', k.jobs, job) == 0 then return 'unknown' end
local e = entry_of(redis.call('HGET', k.jobs, job))
-- guard:remove-defined P2 a job that was stored again meanwhile, or is a program's, stays
if args.digest and not (e and e.digest == args.digest) then return 'used' end
-- guard:remove-unused P2 what has run stays
if args.unused and redis.call('LLEN', k.history) > 0 then return 'used' end
if any(k.runs, run_of, job, function() return true end) then return 'held' end
if any(k.waiting, pending_of, job, function() return false end) then return 'foreign' end
local all = redis.call('HGETALL', k.waiting)
for i = 2, #all, 2 do
  local p = pending_of(all[i]) or tick_of(all[i])
  if p and p.job == job then
    redis.call('HDEL', k.waiting, all[i - 1])
    redis.call('HDEL', k.kept, 'g:' .. all[i - 1])
    redis.call('ZREM', k.pending, all[i - 1])
    redis.call('HDEL', k.cancels, all[i - 1]) -- an open tick that somebody wanted ended
    redis.call('ZREM', k.unique, p.request)
  end
end
for _, row in ipairs(redis.call('LRANGE', k.history, 0, -1)) do
  local _, _, run, request = string.match(row, ROW_RUN)
  if run then
    redis.call('HDEL', k.kept, run, 'p:' .. run, 's:' .. run, 'g:' .. run)
    redis.call('ZREM', k.unique, request)
  end
end
if e then redis.call('HDEL', k.anew, job .. '|' .. e.digest, job .. '|' .. e.digest .. '|heard') end
for _, key in ipairs({k.jobs, k.pauses, k.followers, k.backfills, k.backfilled}) do redis.call('HDEL', key, job) end
redis.call('ZREM', k.due, job)
forget_joins(k.joins, job)
redis.call('DEL', k.history)
return 'removed'
