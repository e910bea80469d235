-- Takes an event out of the outbox, when all followers were told.
-- keys: outbox
-- Arguments: relayedArgs in follow.go.
-- Returns done, or server: another one may have lost what the followers were told, and does nothing.
-- needs: lib/args lib/base
-- guard:relayed-server P2 word that a failover may have lost is told again
if elsewhere(args.server, server_id()) then return 'server' end
redis.call('ZREM', k.outbox, args.event)
return 'done'
