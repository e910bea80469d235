-- Acquires permits, or gets a place in the queue, or returns the holders. The same owner may repeat
-- the call: its lease then lasts another ttl.
--
-- Behind token.lua, queue.lua, which names the KEYS, and share.lua.
--
-- ARGV  1 the kind: how many permits there are, or rw   2 how many to take
--       3 owner   4 ttl in ms. From the end, arguments without a value may be left out:
--       5 the holder's text   6 delay in ms   7 channel for the notification; '' without a queue
--       8 a token that the new one must exceed   9 token of the grant to take over; 0 for none
--
-- Returns the token, a text, when it was granted; otherwise {code, text, left, place, who}, with left in ms until
-- the first lease lapses:
--   0 to 4  see acquire.lua; text and who describe the holder whose lease lapses first
--   5       the name is in use as something else: text is the kind, 1 for a lock
local kind, weight, owner, ttl = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])
local who, delay, channel = ARGV[5] or '', tonumber(ARGV[6] or 0), ARGV[7] or ''
local after, from = tonumber(ARGV[8] or 0), ARGV[9] or '0'

local now = server_micros()
local share, last = read_share(now), redis.call('HMGET', state, 'o', 'q')
if not share then return {5, '1', 0, 0, ''} end
local queued = has_queue(last[2], now)
if share.kind ~= kind then
  local first, text
  if queued then first, text = the_queue().first(now / 1000) end
  local of_lock = first and not string.match(text, '^%d')
  if share.used > 0 or first and share.kind or of_lock then return {5, share.kind or '1', 0, 0, ''} end
  share.kind = kind
end

local mine = share.of[owner]
-- guard:share-revoked P4 a holder that was told to end is not granted its permits again
if mine and mine.revoked then return {4, '', 0, 0, ''} end
if mine and tonumber(mine.token) > after then
  mine.lapses, mine.who = millis(now) + ttl + delay, who
  lasts(ttl + delay)
  redis.call('HSET', lock, owner, text_of(mine))
  return mine.token
end
-- guard:share-released P4 a late copy of a request takes no permits: no owner would release them
if is_among(owner, last[1]) then return {2, '', 0, 0, ''} end
if after > now + 3600000000 then return {3, '', 0, 0, ''} end
drop_lapsed(share)

-- The grant that this grant replaces: the caller's own, handed over with a token that is not above
-- `after`, or the grant to take over.
local replaced = mine and owner
for other, held in pairs(share.of) do
  if from ~= '0' and held.token == from then replaced = other end
end
local freed = replaced and share.of[replaced].weight or 0

local first = not replaced and queued and serve(share, now, owner) or nil
local free = not first or first == owner
-- guard:share-full P4 no more permits are granted than there are
if share.used - freed + weight > permits_of(kind) then free = false end
if free then
  if replaced then
    redis.call('HDEL', lock, replaced)
    share.of[replaced], share.used = nil, share.used - freed
  end
  if channel ~= '' then the_queue().leave(owner) end
  local token = grant(share, owner, weight, ttl + delay, now, after, who)
  if queued then serve(share, now) end
  return token
end

local place = 0
if channel ~= '' then
  place = the_queue().join(owner, weight .. ' ' .. channel, now)
  lasts(queue_timeout)
end
local soonest -- of two in one millisecond, the earlier grant
for other, held in pairs(share.of) do
  local best = soonest and share.of[soonest]
  if not best or held.lapses < best.lapses or held.lapses == best.lapses and held.token < best.token then soonest = other end
end
local held = share.of[soonest]
return {0, soonest, held.lapses - millis(now), place, held.who}
