-- The queue of a lock's waiters, and how a lock changes hands. Part of all scripts
-- but renew, behind token.lua and five numbers: guard in microseconds; keep, the
-- life of the state after the lock's, in ms; queue_timeout in ms; max_queue, the
-- places of a queue; max_permits, see share.lua.
--
-- KEYS of these scripts
--   1 lock     string "token:owner", "-token:owner" once it was revoked
--   2 state    hash t, r: the last token and the id of the server that gave it;
--              o: the last owners who released, one a line; h: the holder's text;
--              q: until when the queue may have a waiter, in ms
--   3 queue    sorted set, owners by the microsecond in which they came
--   4 waiters  hash, per queued owner "alive channel": until when it counts as
--              alive, in ms, and its channel, S (sharded) or P in front
local lock, state, queue, waiters = KEYS[1], KEYS[2], KEYS[3], KEYS[4]

-- holder_of(value) -> owner, token, revoked; nil when the value is of another format.
local function holder_of(value)
  local minus, token, owner = string.match(value or '', '^(%-?)(%d+):(.*)$')
  return owner, token, minus == '-'
end

-- is_among(owner, o) reports whether owner is one of the lines of o, which may be false.
local function is_among(owner, o)
  return o and string.find('\n' .. o .. '\n', '\n' .. owner .. '\n', 1, true) ~= nil
end

-- among(owner, o) -> o with owner in front, the last eight lines of it.
local function among(owner, o)
  if not o then return owner end
  local all, ends = owner .. '\n' .. o, 0
  for _ = 1, 8 do ends = ends and string.find(all, '\n', ends + 1, true) end
  return ends and string.sub(all, 1, ends - 1) or all
end

-- has_queue(q, now) reports whether there may be a waiter. Most locks never have one,
-- and are spared a call.
local function has_queue(q, now)
  return (tonumber(q or 0) or 0) * 1000 > now
end

-- give(owner, px, now, rid, last, after, holder) -> token. last is {t, r} of the
-- state; px is the life of the lock in ms.
local function give(owner, px, now, rid, last, after, holder)
  local token = next_token(last[1], last[2], now, rid, guard)
  if tonumber(token) <= after then token = string.format('%.0f', after + 1) end
  redis.call('SET', lock, token .. ':' .. owner, 'PX', px)
  redis.call('HSET', state, 't', token, 'r', rid, 'h', holder)
  redis.call('PEXPIRE', state, keep + px)
  return token
end

-- the_queue() -> the functions of the queue, by name. Most calls need none of them, and
-- are spared the time to make them.
local function the_queue()
  local function leave(owner)
    if redis.call('ZREM', queue, owner) == 1 then redis.call('HDEL', waiters, owner) end
  end

  -- channel_of(text, ms) -> the channel in a field of waiters; nil when the waiter is not
  -- alive at ms.
  local function channel_of(text, ms)
    local alive, channel = string.match(text or '', '^(%d+) (.*)$')
    return alive and tonumber(alive) > ms and channel or nil
  end

  -- first_waiter(ms) -> owner, channel of the first waiter alive at ms. The dead ones in
  -- front of it are removed.
  local function first_waiter(ms)
    while true do
      local owner = redis.call('ZRANGE', queue, 0, 0)[1]
      if not owner then return nil end
      local channel = channel_of(redis.call('HGET', waiters, owner), ms)
      if channel then return owner, channel end
      leave(owner)
    end
  end

  -- drop_dead(n, ms) -> how many waiters are in front of place n + 1, after the dead ones directly
  -- in front of it were removed. A living waiter removes the dead ones in front of it.
  local function drop_dead(n, ms)
    while n > 0 do
      local owner = redis.call('ZRANGE', queue, n - 1, n - 1)[1]
      if channel_of(redis.call('HGET', waiters, owner), ms) then break end
      leave(owner)
      n = n - 1
    end
    return n
  end

  -- notify(owner, channel) publishes that the owner was given the lock. Without the permission, or
  -- without sharded channels, this fails, and the waiter gets the lock at its next poll.
  local function notify(owner, channel)
    local kind = string.sub(channel, 1, 1) == 'S' and 'SPUBLISH' or 'PUBLISH'
    redis.pcall(kind, string.sub(channel, 2), owner)
  end

  -- hand_over(now) -> owner, token: gives the free lock to the first waiter and notifies it; nil
  -- without a waiter. The lock lapses after queue_timeout without a request of the waiter.
  local function hand_over(now)
    local owner, channel = first_waiter(now / 1000)
    if not owner then return nil end
    leave(owner)
    local last = redis.call('HMGET', state, 't', 'r')
    local token = give(owner, queue_timeout, now, server_id(), last, 0, '')
    notify(owner, channel)
    return owner, token
  end

  -- join(owner, channel, now) -> place; 0 when the queue is full.
  local function join(owner, channel, now)
    if not redis.call('ZSCORE', queue, owner) then
      if drop_dead(redis.call('ZCARD', queue), now / 1000) >= max_queue then return 0 end
      local last = redis.call('ZREVRANGE', queue, 0, 0, 'WITHSCORES')[2] or 0
      redis.call('ZADD', queue, string.format('%.0f', math.max(now, tonumber(last) + 1)), owner)
    end
    local alive = string.format('%.0f', math.floor(now / 1000) + queue_timeout)
    redis.call('HSET', waiters, owner, alive .. ' ' .. channel)
    redis.call('PEXPIRE', queue, queue_timeout)
    redis.call('PEXPIRE', waiters, queue_timeout)
    redis.call('HSET', state, 'q', alive)
    -- The state is new when the lock is of another format.
    if redis.call('PTTL', state) < queue_timeout then redis.call('PEXPIRE', state, queue_timeout) end
    return drop_dead(redis.call('ZRANK', queue, owner), now / 1000) + 1
  end

  return {leave = leave, channel_of = channel_of, first = first_waiter, notify = notify, hand_over = hand_over, join = join}
end
