-- Take a lock, stand in line for it, or say who has it. May be repeated by the
-- same owner: the lock is then kept for another ttl.
--
-- In front of this text stand token.lua and line.lua, which says what KEYS are.
--
-- ARGV  1 owner   2 ttl in ms; of the others, what stands behind the last that says something is left out:
--       3 who that is, for people   4 delay in ms   5 the channel to be called on, '' not to wait
--       6 a token that the new one must exceed   7 the token to be taken over, 0 for none
--
-- Returns the token, a text, when the lock is yours; or {code, text, left, place, who}, left being ms until others can have it:
--   0  held; text is the owner, place yours in the line or 0, who as the holder said
--   2  given back by this owner before: a copy of the call came late
--   3  the token to be exceeded is more than an hour ahead of this server's clock
--   4  revoked before this owner had heard that it was granted
local owner, ttl, who, delay = ARGV[1], tonumber(ARGV[2]), ARGV[3] or '', tonumber(ARGV[4] or 0)
local channel, after, from = ARGV[5] or '', tonumber(ARGV[6] or 0), ARGV[7] or '0'

local function held_by(holder, left, now)
  local place = 0
  if channel ~= '' then place = the_line().join(owner, channel, now or server_micros()) end
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
  -- One that was handed over to us without a word of what it must exceed goes on below.
  -- guard:lock-held P4 a lock that somebody holds is not granted
  if holder ~= owner and (not holder or from == '0' or token ~= from) then
    return held_by(holder or value, redis.call('PTTL', lock))
  end
end

local last = redis.call('HMGET', state, 't', 'r', 'o', 'q')
if is_among(owner, last[3]) then return {2, '', 0, 0, ''} end
local now = server_micros()
if after > now + 3600000000 then return {3, '', 0, 0, ''} end
if not value and has_line(last[4], last[1], now) then
  local first = the_line().first(now / 1000)
  if first and first ~= owner then
    local holder = the_line().hand_over(now)
    return held_by(holder, patience, now)
  end
end
if channel ~= '' then the_line().leave(owner) end
return give(owner, ttl + delay, now, server_id(), last, after, who)
