-- Acquires a lock, or gets a place in its queue, or returns its holder. The same owner may repeat
-- the call: the lock then lasts another ttl.
--
-- Behind token.lua and queue.lua, which names the KEYS.
--
-- ARGV  1 owner   2 ttl in ms. From the end, arguments without a value may be left out:
--       3 the holder's text   4 delay in ms   5 channel for the notification; '' without a queue
--       6 a token that the new one must exceed   7 token of the grant to take over; 0 for none
--
-- Returns the token, a text, when the lock was granted; otherwise {code, text, left, place, who},
-- with left in ms until another owner can have the lock:
--   0  held; text is the holder's owner value, who its text, place the caller's in the queue or 0
--   2  this owner has released the lock already: the request is a late copy
--   3  the token to exceed is more than an hour ahead of this server's clock
--   4  this owner's grant was revoked before this request
local owner, ttl, who, delay = ARGV[1], tonumber(ARGV[2]), ARGV[3] or '', tonumber(ARGV[4] or 0)
local channel, after, from = ARGV[5] or '', tonumber(ARGV[6] or 0), ARGV[7] or '0'

local function held_by(holder, left, now)
  local place = 0
  if channel ~= '' then place = the_queue().join(owner, channel, now or server_micros()) end
  return {0, holder, left, place, redis.call('HGET', state, 'h') or ''}
end

local value = redis.call('GET', lock)
if value then
  local holder, token, revoked = holder_of(value)
  if holder == owner and revoked then return {4, '', 0, 0, ''} end
  if holder == owner and tonumber(token) > after then
    redis.call('PEXPIRE', lock, ttl + delay)
    redis.call('HSET', state, 'h', who)
    redis.call('PEXPIRE', state, keep + ttl + delay)
    return token
  end
  -- A lock that was handed over with a token that is not above `after` is granted anew below.
  -- guard:lock-held P4 a lock that somebody holds is not granted
  if holder ~= owner and (not holder or from == '0' or token ~= from) then
    return held_by(holder or value, redis.call('PTTL', lock))
  end
end

local last = redis.call('HMGET', state, 't', 'r', 'o', 'q')
if is_among(owner, last[3]) then return {2, '', 0, 0, ''} end
local now = server_micros()
if after > now + 3600000000 then return {3, '', 0, 0, ''} end
if not value and has_queue(last[4], now) then
  local first = the_queue().first(now / 1000)
  if first and first ~= owner then
    local holder = the_queue().hand_over(now)
    return held_by(holder, queue_timeout, now)
  end
end
if channel ~= '' then the_queue().leave(owner) end
return give(owner, ttl + delay, now, server_id(), last, after, who)
