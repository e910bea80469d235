-- The holders of a semaphore or a read-write lock. Part of the scripts share_*.lua, owner and revoke, behind
-- queue.lua, which names the KEYS.
--
-- The first key is a hash here, while the name has a holder or a waiter:
--   ''      the kind: how many permits there are, or rw
--   owner   "lapses token weight who": when the lease lapses, in ms; the token, with '-' in front once it was
--           revoked; how many permits it takes; the holder's text
-- A read-write lock has max_permits of them: a reader takes one, a writer takes all. A waiter has its weight in
-- front of its channel: "weight channel". The holders are all read for a grant: the time grows with their number.

-- millis(now) -> ms, rounded down, as Redis rounds for PX and PTTL. A lease lives up to its last millisecond.
local function millis(now) return math.floor(now / 1000) end

-- held_of(text) -> {lapses, token, weight, who, revoked}; with lapses 0 when there is no text.
local function held_of(text)
  local lapses, minus, token, weight, who = string.match(text or '', '^(%d+) (%-?)(%d+) (%d+) (.*)$')
  return {lapses = tonumber(lapses or 0), token = token, weight = tonumber(weight or 0), who = who, revoked = minus == '-'}
end

local function text_of(h)
  return string.format('%.0f', h.lapses) .. (h.revoked and ' -' or ' ') .. h.token .. ' ' .. h.weight .. ' ' .. h.who
end

-- read_share(now) -> {kind, used, of, lapsed}: the kind, nil without the key; the permits in use; the living holders by
-- owner; the owners that are not alive. nil when the key is a lock's, or of another format.
local function read_share(now)
  local all = redis.pcall('HGETALL', lock)
  if all.err then return nil end
  local share = {used = 0, of = {}, lapsed = {}}
  for i = 1, #all, 2 do
    local owner, held = all[i], held_of(all[i + 1])
    if owner == '' then
      share.kind = all[i + 1]
    elseif not held.token then
      return nil
    elseif held.lapses >= millis(now) then
      share.of[owner], share.used = held, share.used + held.weight
    else
      share.lapsed[#share.lapsed + 1] = owner
    end
  end
  return share
end

-- drop_lapsed(share) removes the holders that are not alive.
local function drop_lapsed(share)
  for _, owner in ipairs(share.lapsed) do redis.call('HDEL', lock, owner) end
end

local function permits_of(kind) return kind == 'rw' and max_permits or tonumber(kind) end

-- lasts(px) keeps the keys for px ms at least.
local function lasts(px)
  px = math.max(px, redis.call('PTTL', lock))
  redis.call('PEXPIRE', lock, px)
  redis.call('PEXPIRE', state, keep + px)
end

-- grant(share, owner, weight, px, now, after, who) -> token. px is the life of the lease in ms.
local function grant(share, owner, weight, px, now, after, who)
  local last, rid = redis.call('HMGET', state, 't', 'r'), server_id()
  local token = next_token(last[1], last[2], now, rid, guard)
  if tonumber(token) <= after then token = string.format('%.0f', after + 1) end
  local held = {lapses = millis(now) + px, token = token, weight = weight, who = who}
  redis.call('HSET', lock, '', share.kind, owner, text_of(held))
  redis.call('HSET', state, 't', token, 'r', rid)
  lasts(px)
  share.of[owner], share.used = held, share.used + weight
  return token
end

-- serve(share, now, own) -> the first waiter that has to wait, or own, or nil: gives free permits to the first
-- waiters, as long as there are enough, and notifies them. It stops at own.
local function serve(share, now, own)
  local line = the_queue()
  while true do
    local owner, text = line.first(now / 1000)
    if not owner or owner == own then return owner end
    local weight, channel = string.match(text, '^(%d+) (.*)$')
    if share.used + weight > permits_of(share.kind) then return owner end
    line.leave(owner)
    grant(share, owner, tonumber(weight), queue_timeout, now, 0, '')
    line.notify(owner, channel)
  end
end
