-- Puts off the next look at a job that is overdue and that no living node holds. The cursor stays.
-- keys: jobs due
-- Arguments: postponeArgs in operate.go.
-- Returns one word: postponed, stale, unknown.
-- needs: lib/args codec/entry
local e = entry_of(redis.call('HGET', k.jobs, args.job))
if not e then return 'unknown' end
local due = redis.call('ZSCORE', k.due, args.job)
if e.cursor == '' or not due or tonumber(due) ~= args.seen then return 'stale' end
redis.call('ZADD', k.due, args.at, args.job)
return 'postponed'
