-- Keeps the checkpoint of a run in flight, in place of its previous attempt's. The checkpoint is
-- deleted with the run's row, or when the run succeeds.
-- keys: runs kept gate incarnation
-- Arguments: saveArgs in saved.go; then the checkpoint.
-- Returns one word: saved; gone (the run has ended or was granted anew since, or its record cannot
-- be read); server (the caller is of another epoch).
-- needs: lib/args lib/epoch codec/run
if elsewhere(args.server, (epoch_at(server_id()))) then return 'server' end
local _, _, token = string.match(redis.call('HGET', k.runs, args.run) or '', RUN_BEAT)
-- guard:save-token P5 a run that has lost its lease saves nothing: the rule of settle and renew
if token ~= args.token then return 'gone' end
redis.call('HSET', k.kept, 's:' .. args.run, bytes)
if args.before then redis.call('HDEL', k.kept, 's:' .. args.before) end
return 'saved'
