-- Take a lock, stand in line for it, or say who has it. May be repeated by the
-- same owner: the lock is then kept for another ttl.
--
-- In front of this text stand token.lua and line.lua, which says what KEYS are.
--
-- ARGV  1 owner   2 ttl in ms; of the others, what stands behind the last that says something is left out:
--       3 who that is, for people   4 delay in ms   5 the channel to be called on, '' not to wait
--       6 a token that the new one must exceed   7 the token to be taken over, 0 for none
--
-- Returns {1, token}: yours; or {code, text, left, place, who}, left being ms until others can have the lock:
--   0  held; text is the owner, place yours in the line or 0, who as the holder said
--   2  given back by this owner before: a copy of the call came late
--   3  the token to be exceeded is more than an hour ahead of this server's clock
--   4  revoked before this owner had heard that it was granted
local owner, ttl, who, delay = ARGV[1], tonumber(ARGV[2]), ARGV[3] or '', tonumber(ARGV[4] or 0)
local channel, after, from = ARGV[5] or '', tonumber(ARGV[6] or 0), ARGV[7] or '0'

-- stand_in_line(now) -> place, 0 when the line is full.
local function stand_in_line(now)
  if not redis.call('ZSCORE', line, owner) then
    if close_up(redis.call('ZCARD', line), now / 1000) >= most then return 0 end
    local last = redis.call('ZREVRANGE', line, 0, 0, 'WITHSCORES')[2] or 0
    redis.call('ZADD', line, string.format('%.0f', math.max(now, tonumber(last) + 1)), owner)
  end
  local alive = string.format('%.0f', math.floor(now / 1000) + patience)
  redis.call('HSET', waiters, owner, alive .. ' ' .. channel)
  redis.call('PEXPIRE', line, patience)
  redis.call('PEXPIRE', waiters, patience)
  redis.call('HSET', state, 'q', alive)
  if redis.call('PTTL', state) < patience then redis.call('PEXPIRE', state, patience) end -- there was none, under a foreign lock
  return close_up(redis.call('ZRANK', line, owner), now / 1000) + 1
end

local function held_by(holder, left, now)
  local place = 0
  if channel ~= '' then place = stand_in_line(now or server_micros()) end
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
    return {1, token}
  end
  -- One that was handed over to us without a word of what it must exceed goes on below.
  if holder ~= owner and (not holder or from == '0' or token ~= from) then
    return held_by(holder or value, redis.call('PTTL', lock))
  end
end

local last = redis.call('HMGET', state, 't', 'r', 'o', 'q')
if is_among(owner, last[3]) then return {2, '', 0, 0, ''} end
local now = server_micros()
if after > now + 3600000000 then return {3, '', 0, 0, ''} end
if not value and has_line(last[4], last[1], now) then
  local first = first_in_line(now / 1000)
  if first and first ~= owner then
    local holder = hand_over(now)
    return held_by(holder, patience, now)
  end
end
if channel ~= '' then leave_line(owner) end
return {1, give(owner, ttl + delay, now, server_run_id(), last, after, who)}
