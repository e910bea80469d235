-- Phase 1: acquire the lock at this master and promise a token. May be repeated by the
-- same owner: the lock then lasts another ttl, and the token is the same.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- ARGV  1 owner   2 ttl and delay in ms   3 number of this attempt of the owner
--       4 the client's clock in microseconds, which the token follows if it can
--       5 a token that the new one must exceed   6 token of the grant to take over, 0 for none
--       7 the holder's text   8 life of the state in ms
--       9 the client's longest ttl, in ms
--
-- Returns {code, text, left, who, id, largest, longest, lost}; the last three are the
-- node's h and m, and for how many ms the loss of its state has been known:
--   1  granted at this master; text is the token
--   0  held; text is the lock's value, left ms until others can have it, who the holder's text
--   2  this owner has released the lock already: the request is a late copy
--   3  the token to exceed is more than an hour ahead of this server's clock
--   4  this master has lost its state and does not vote; text is "restarted" or "empty"
local owner, px, attempt = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local clock, after, from = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local who, keep, longest = ARGV[7], ARGV[8], tonumber(ARGV[9])

local rid, now = server_id(), server_micros()
local known = redis.call('HMGET', node, 'r', 'm', 'q')

-- guard:redlock-amnesiac P4 a master that may have lost its promises does not vote
if known[1] ~= rid then
  local ms = math.floor(now / 1000)
  local since, of = string.match(known[3] or '', '^(%d+):(.*)$')
  if of ~= rid then
    since = ms
    redis.call('HSET', node, 'q', digits(ms) .. ':' .. rid)
  end
  return {4, known[1] and 'restarted' or 'empty', 0, '', rid, redis.call('HGET', node, 'h') or '0',
    tonumber(known[2] or 0), ms - tonumber(since)}
end

local function answer(code, text, left, whom)
  return {code, text, left, whom or '', rid, redis.call('HGET', node, 'h') or '0', longest, 0}
end

if tonumber(known[2] or 0) < longest then
  redis.call('HSET', node, 'm', digits(longest))
else
  longest = tonumber(known[2])
end

local value = redis.call('GET', lock)
local holder, token, stamp, revoked = holder_of(value)
if value and holder == owner and not revoked then
  redis.call('SET', lock, value_of(token, math.max(stamp, attempt), owner), 'PX', px)
  redis.call('HSET', state, 'h', who)
  redis.call('PEXPIRE', state, keep)
  return answer(1, digits(token), px)
end
-- guard:redlock-held P4 a master promises a lock to one owner
if value and (not holder or token ~= from) then
  return answer(0, value, redis.call('PTTL', lock), redis.call('HGET', state, 'h'))
end

local last = redis.call('HMGET', state, 't', 'r', 'o', 'g', 'gt')
if last[3] == owner then return answer(2, '', 0) end
local hour = 3600000000
if after >= now + hour then return answer(3, '', 0) end

token = math.max(counter(last[1], last[2], rid) + 1, math.min(clock, now + hour), after + 1)
redis.call('SET', lock, value_of(token, attempt, owner), 'PX', px)
if last[4] ~= owner then
  redis.call('HSET', state, 'pg', last[2] == rid and last[4] or '', 'pt', last[2] == rid and last[5] or '0')
end
remember(token, rid, owner, keep)
redis.call('HSET', state, 'gt', digits(token))
redis.call('HSET', state, 'h', who)
return answer(1, digits(token), px)
