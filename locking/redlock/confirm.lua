-- Phase 2: set the largest token of the quorum as the lock's token, if this owner has
-- the lock here. A master with a larger token refuses: it is of another hold. So an
-- accepted token is larger than all that were accepted here before. May be repeated.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- ARGV  1 owner   2 token   3 life of the state in ms   4 number of this attempt; a later
--       one of the owner may have been granted another token
--
-- Returns 1 done, 0 refused.
local owner, token, keep, number = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

local rid = server_id()
if not votes(rid) then return 0 end
local holder, own, attempt, revoked = holder_of(redis.call('GET', lock))
-- guard:redlock-token P3 a master that promised a larger token refuses a smaller one
if holder ~= owner or revoked or own > token or attempt > number then return 0 end
redis.call('SET', lock, value_of(token, attempt, owner), 'KEEPTTL')
local last = redis.call('HMGET', state, 't', 'r')
redis.call('HSET', state, 'gt', digits(token))
remember(math.max(counter(last[1], last[2], rid), token), rid, owner, keep)
return 1
