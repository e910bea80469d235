-- Keep a lock for another ttl, if it is still this grant's. May be repeated. A
-- revoked lock has another value: its holder learns of it here, and gives it back.
--
-- KEYS  1 the lock. Not the others of a lock, of which some may not exist: a Cluster
--         whose slot is on its way refuses a script that names such a key, and a
--         renewal must not be refused then.
-- ARGV  1 the expected value, "token:owner"   2 ttl and delay in ms
--
-- Returns 1 renewed, 0 not yours any more, 2 the same because it was revoked.
local lock, value, px = KEYS[1], ARGV[1], ARGV[2]

local held = redis.call('GET', lock)
-- guard:lock-renew-owner P4 a lock that another owner has is not renewed for this one
if held ~= value then return held == '-' .. value and 2 or 0 end
return redis.call('PEXPIRE', lock, px)
