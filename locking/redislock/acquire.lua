-- Take a lock, or say who has it. May be repeated by the same owner.
--
-- In front of this text stand server_micros, server_run_id and next_token.
--
-- KEYS  1 the lock, string "token:owner"   2 its token state, hash t r o
-- ARGV  1 owner   2 ttl in ms   3 guard in microseconds   4 life of the token state in ms
--
-- Returns {code, text, left}, left being ms until the lock lapses:
--   1  yours; text is the token. left < ttl when it was yours already
--   0  held; text is the owner
local lock, state = KEYS[1], KEYS[2]
local owner, ttl, guard, keep = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local value = redis.call('GET', lock)
if value then
  local token, holder = string.match(value, '^(%d+):(.*)$')
  local left = redis.call('PTTL', lock)
  if holder == owner then return {1, token, left} end
  return {0, holder or value, left}
end

local rid = server_run_id()
local last = redis.call('HMGET', state, 't', 'r')
local token = next_token(last[1], last[2], server_micros(), rid, guard)
redis.call('SET', lock, token .. ':' .. owner, 'PX', ttl)
redis.call('HSET', state, 't', token, 'r', rid)
redis.call('PEXPIRE', state, keep)
return {1, token, tonumber(ttl)}
