-- Removes a job and its records. Two kinds stay: definitions, which tidy removes when no node
-- announces them any more, and unique keys, except those of pending runs and of runs in the
-- history. A job with a run in flight is not removed.
-- keys: jobs pauses due runs pending waiting kept followers joins history cancels unique anew backfills backfilled gate
-- Arguments: removeArgs in operate.go.
-- Returns 'closed|state|move|words', or one word: removed, held (a run is in flight), unknown,
-- foreign (a pending record of the job cannot be read), used (the job has another definition than
-- the given one, or has a history although the caller wants none).
-- needs: lib/args lib/gate lib/waiting lib/joins codec/entry codec/row codec/run codec/pending codec/tick
local shut = closed(k.gate)
-- guard:remove-gate P7 a partition that a move has closed removes nothing
if shut then return 'closed|' .. shut end
local job = args.job
if redis.call('HEXISTS', k.jobs, job) == 0 then return 'unknown' end
local e = entry_of(redis.call('HGET', k.jobs, job))
-- guard:remove-defined P2 a job that was stored again since, or is defined by a program, stays
if args.digest and not (e and e.digest == args.digest) then return 'used' end
-- guard:remove-unused P2 a job with a history stays
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
    redis.call('HDEL', k.cancels, all[i - 1]) -- the cancel flag of an open tick
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
