-- Removes an event from the outbox after its delivery to all followers.
-- keys: outbox gate incarnation
-- Arguments: relayedArgs in follow.go.
-- Returns done, or server and does nothing: another server may have lost the deliveries.
-- needs: lib/args lib/epoch
-- guard:relayed-server P2 an event whose delivery a failover may have lost is delivered again
if elsewhere(args.server, (epoch_at(server_id()))) then return 'server' end
redis.call('ZREM', k.outbox, args.event)
return 'done'
