-- Notes an operator's action, done or refused.
-- keys: audit
-- Arguments: auditArgs in audit.go.
-- Returns the time of the note, ms.
-- needs: lib/args lib/base
local us, ms = clock(args.now, args.skew)
redis.call('RPUSH', k.audit, '1|' .. int(ms) .. '|' .. args.action)
redis.call('LTRIM', k.audit, -args.most, -1)
return int(ms)
