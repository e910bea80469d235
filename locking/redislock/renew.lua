-- Renews a lock for another ttl, if this grant holds it. May be repeated. A revoked lock has
-- another value, so the renewal returns the revocation.
--
-- KEYS  1 the lock. Not the lock's other keys, which may be missing: a Cluster that
--         moves the slot refuses a script that names a missing key, and a renewal must
--         work then.
-- ARGV  1 the expected value, "token:owner"   2 ttl and delay in ms
--
-- Returns 1 renewed, 0 not held any more, 2 not held any more, because it was revoked.
local lock, value, px = KEYS[1], ARGV[1], ARGV[2]

local held = redis.call('GET', lock)
-- guard:lock-renew-owner P4 a lock that another owner has is not renewed for this one
if held ~= value then return held == '-' .. value and 2 or 0 end
return redis.call('PEXPIRE', lock, px)
