-- The line of those who wait for a lock, and how a lock changes hands. Put in
-- front of the scripts but renew, behind token.lua and four numbers: guard in
-- microseconds; keep, the life of the state behind the lock's, and patience, in
-- ms; most, the places of a line.
--
-- KEYS of all scripts
--   1 lock     string "token:owner", "-token:owner" once it was revoked
--   2 state    hash t, r: the last token and the id of the server that gave it;
--              o: the last owners who released, a line each; h: who the holder is, for people;
--              q: until when there may be somebody in line, in ms
--   3 line     sorted set, owners by the microsecond in which they came
--   4 waiters  hash, per owner in line "alive channel": until when it counts as
--              living, in ms, and where it listens, S (sharded) or P in front
local lock, state, line, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- holder_of(value) -> owner, token, revoked; nil when the value is not ours.
local function holder_of(value)
  local minus, token, owner = string.match(value or '', '^(%-?)(%d+):(.*)$')
  return owner, token, minus == '-'
end

-- is_among(owner, o) reports whether owner is one of those in o, which may be false.
local function is_among(owner, o)
  return o and string.find('\n' .. o .. '\n', '\n' .. owner .. '\n', 1, true) ~= nil
end

-- has_line(q, t, now) reports whether there may be somebody in line, as the state says: most locks
-- never have one, and are spared a look at it. A state without a token says nothing: it is
-- new, or was lost, and the line was not.
local function has_line(q, t, now)
  return not t or (tonumber(q or 0) or 0) * 1000 > now
end

-- give(owner, px, now, rid, last, after, holder) -> token. last is {t, r} of the
-- state; px how long the lock is kept, in ms.
local function give(owner, px, now, rid, last, after, holder)
  local token = next_token(last[1], last[2], now, rid, guard)
  if tonumber(token) <= after then token = string.format('%.0f', after + 1) end
  redis.call('SET', lock, token .. ':' .. owner, 'PX', px)
  redis.call('HSET', state, 't', token, 'r', rid, 'h', holder)
  redis.call('PEXPIRE', state, keep + px)
  return token
end

-- the_line() -> what is done with the line, by name. Most locks never have one, and a call is spared the time that it
-- takes to make these functions.
local function the_line()
  local function leave(owner)
    if redis.call('ZREM', line, owner) == 1 then redis.call('HDEL', waiters, owner) end
  end

  -- channel_of(text, ms) -> where the waiter listens whose field of waiters is text, nil when it does not live at ms.
  local function channel_of(text, ms)
    local alive, channel = string.match(text or '', '^(%d+) (.*)$')
    return alive and tonumber(alive) > ms and channel or nil
  end

  -- first_in_line(ms) -> owner, channel of the first who lives at ms; the dead in
  -- front of it leave the line.
  local function first_in_line(ms)
    while true do
      local owner = redis.call('ZRANGE', line, 0, 0)[1]
      if not owner then return nil end
      local channel = channel_of(redis.call('HGET', waiters, owner), ms)
      if channel then return owner, channel end
      leave(owner)
    end
  end

  -- close_up(n, ms) -> how many stand in front of place n + 1, now that the dead right in front of it have left. Those farther
  -- ahead are left to the living behind them, who come forward as often.
  local function close_up(n, ms)
    while n > 0 do
      local owner = redis.call('ZRANGE', line, n - 1, n - 1)[1]
      if channel_of(redis.call('HGET', waiters, owner), ms) then break end
      leave(owner)
      n = n - 1
    end
    return n
  end

  -- hand_over(now) -> owner, token: gives the free lock to the first in line and
  -- calls it, or returns nil. Until it comes forward the lock is kept for its
  -- patience only.
  local function hand_over(now)
    local owner, channel = first_in_line(now / 1000)
    if not owner then return nil end
    leave(owner)
    local last = redis.call('HMGET', state, 't', 'r')
    local token = give(owner, patience, now, server_id(), last, 0, '')
    -- A call that fails, for want of a permission or of sharded channels, costs
    -- the waiter the time until it asks by itself.
    local kind = string.sub(channel, 1, 1) == 'S' and 'SPUBLISH' or 'PUBLISH'
    redis.pcall(kind, string.sub(channel, 2), owner)
    return owner, token
  end

  -- join(owner, channel, now) -> place, 0 when the line is full.
  local function join(owner, channel, now)
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

  return {leave = leave, channel_of = channel_of, first = first_in_line, hand_over = hand_over, join = join}
end
