-- Keep a lock for another ttl, if it is still this grant's. May be repeated.
--
-- KEYS  1 the lock, string "token:owner"
-- ARGV  1 the expected value, "token:owner"   2 ttl in ms
--
-- Returns 1 renewed, 0 not yours any more.
local lock, value, ttl = KEYS[1], ARGV[1], ARGV[2]

if redis.call('GET', lock) ~= value then return 0 end
return redis.call('PEXPIRE', lock, ttl)
