-- Takes an event out of the outbox, when all followers were told.
-- KEYS[1] outbox  ARGV[1] id of the server that the caller knows, '' for any  ARGV[2] the event's record
-- Returns done, or server: another one may have lost what the followers were told, and does nothing.
-- needs: lib/base
-- guard:relayed-server P2 word that a failover may have lost is told again
if elsewhere(ARGV[1], server_id()) then return 'server' end
redis.call('ZREM', KEYS[1], ARGV[2])
return 'done'
