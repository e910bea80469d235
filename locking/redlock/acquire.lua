-- Acquires the lock at this master and promises a token. The same owner may repeat the call: the
-- lock then lasts another ttl, and the token is the same, or larger where argument 5 requires it.
--
-- Behind token.lua and head.lua, which names the KEYS.
--
-- ARGV  1 owner   2 ttl and delay in ms   3 number of this attempt of the owner
--       4 the client's clock in microseconds, which the token follows if it can
--       5 a token that the new one must exceed   6 token of the grant to take over, 0 for none
--       7 the holder's text   8 life of the state in ms   9 the client's longest ttl, in ms
--
-- Returns {code, token, owner, left, who, id}, with the server's id:
--   1  granted at this master, with this token
--   0  held by owner, for left ms until another owner can have it; who is the holder's text
--   2  this owner has released the lock already: the request is a late copy
--   3  the token to exceed is more than an hour ahead of this server's clock
--   4  this master is new or has lost its state, and does not vote
local owner, px, attempt = ARGV[1], ARGV[2], tonumber(ARGV[3])
local clock, after, from = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local who, keep, longest = ARGV[7], ARGV[8], tonumber(ARGV[9])

local rid, latest = server_id(), server_micros() + 3600000000
local votes, largest, most = own(rid)
-- guard:redlock-amnesiac P4 a master that may have lost its promises does not vote
if not votes then return {4, 0, '', 0, '', rid} end
if most < longest then redis.call('HSET', node, 'm', digits(longest)) end

local value = redis.call('GET', lock)
local holder, token, stamp, revoked = holder_of(value)
local again = holder == owner and not revoked
-- guard:redlock-held P4 a master promises a lock to one owner
if value and not again and (not holder or token ~= from) then
  return {0, 0, holder or value, redis.call('PTTL', lock), redis.call('HGET', state, 'h') or '', rid}
end
local c, released = known(rid, largest)
if not again then
  if released == owner then return {2, 0, '', 0, '', rid} end
  if after >= latest then return {3, 0, '', 0, '', rid} end
  token, stamp = math.min(clock, latest), 0
  -- guard:redlock-token P3 a promise is larger than all that this master gave for the lock before
  token = math.max(token, c + 1)
end
if attempt >= stamp then token = math.max(token, after + 1) end -- else a late copy of an earlier attempt
hold(rid, token, math.max(stamp, attempt), owner, px, keep, c, largest, 'h', who)
return {1, token, '', 0, '', rid}
