-- Put a lock that its holder has just renewed at a majority in place at this
-- master too, where it is missing or has another token. It is not put where it
-- was given back, or where another owner was granted it since: such a call came
-- late. May be repeated.
--
-- In front of this text stand token.lua and head.lua, which says what KEYS are.
--
-- ARGV  1 owner   2 token   3 ttl and delay in ms   4 life of the state in ms
--
-- Returns 1 done, 0 refused.
local owner, token, px, keep = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local rid = server_run_id()
if not votes(rid) then return 0 end
local value = redis.call('GET', lock)
local holder, _, attempt, revoked = holder_of(value)
if value and (holder ~= owner or revoked) then return 0 end

local last = redis.call('HMGET', state, 't', 'r', 'g', 'o', 'u', 'gt')
local c = counter(last[1], last[2], rid)
if not value then
  if last[4] == owner or last[5] == owner then return 0 end
  local given = last[2] == rid and tonumber(last[6] or 0) or 0
  if given >= token and last[3] ~= owner then return 0 end
end
redis.call('SET', lock, value_of(token, attempt, owner), 'PX', px)
remember(math.max(c, token), rid, owner, keep)
redis.call('HSET', state, 'gt', digits(token), 'pg', owner, 'pt', digits(token))
return 1
