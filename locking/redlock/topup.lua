-- Set a lock, which its holder has just renewed at a majority, at this master too, where
-- it is missing or has another token. Refused after a release here, and after a later
-- grant to another owner: the call is late then. May be repeated.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- ARGV  1 owner   2 token   3 ttl and delay in ms   4 life of the state in ms
--       5 number of the renewal among the owner's attempts: a withdrawal of an earlier one
--         does not release this lock, and a later one may have been granted another token
--
-- Returns 1 done, 0 refused.
local owner, token, px, keep, number = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])

local rid = server_id()
if not votes(rid) then return 0 end
local value = redis.call('GET', lock)
local holder, _, attempt, revoked = holder_of(value)
if value and (holder ~= owner or revoked or attempt > number) then return 0 end

local last = redis.call('HMGET', state, 't', 'r', 'g', 'o', 'u', 'gt', 'pg', 'pt')
local c = counter(last[1], last[2], rid)
if not value and (last[4] == owner or last[5] == owner) then return 0 end
local function since(whom, given) return last[2] == rid and whom ~= owner and tonumber(given or 0) >= token end
if since(last[3], last[6]) then return 0 end
if since(last[7], last[8]) then return 0 end -- a late copy of the owner's request followed
redis.call('SET', lock, value_of(token, number, owner), 'PX', px)
remember(math.max(c, token), rid, owner, keep)
redis.call('HSET', state, 'gt', digits(token), 'pg', owner, 'pt', digits(token))
return 1
