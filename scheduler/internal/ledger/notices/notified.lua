-- Notes which events of jobs were sent, and which messages wait, for the holder of the notifiers'
-- lock.
-- keys: notified
-- Arguments: notifiedArgs in notified.go.
-- Returns 'done', or 'stale' when a holder with a greater token has written before.
-- needs: lib/args
local was = redis.call('HGET', k.notified, ':token')
if was and tonumber(was) > tonumber(args.token) then return 'stale' end
redis.call('HSET', k.notified, ':token', args.token)
for i = 1, #(args.set or {}), 2 do redis.call('HSET', k.notified, args.set[i], args.set[i + 1]) end
for _, field in ipairs(args.drop or {}) do redis.call('HDEL', k.notified, field) end
return 'done'
