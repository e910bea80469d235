-- After a failover or a restart of Redis, a node reports its granted runs. Runs that Redis has lost
-- are restored, each with its step of the cursor.
-- keys: jobs runs leases pending waiting kept recent cancels outbox followers due gate incarnation histories
-- Returns {'clock', redis ms} or {'server', id} and does nothing when the caller is wrong about
-- either, else two for each item: word, cursor
--   known       the ledger has the run
--   restored    the ledger has the run again
--   ended       the run's end is recorded
--   lost        the run was granted again, or its tick is accounted for in another way: the
--               caller's run is over
--   behind      the cursor lies before the run's tick, and not where the gap begins: other nodes
--               may report the ticks between. Repeat
--   superseded  another definition is the stored one
--   unknown     no such job
--   foreign     a record that this version cannot read
-- needs: lib/base lib/epoch lib/windows lib/history lib/rows lib/outbox lib/shards codec/entry codec/run codec/pending codec/tick
-- ARGV, written by gen from verbs.go:
--   now        the caller's idea of Redis' time, ms, 0 for none
--   skew       tolerated difference, ms
--   keep       rows to keep
--   keep_for   age to keep, ms
--   server     id of the caller's epoch, '' for any
-- then for each item:
--   job        the job's name
--   digest     of the caller's definition
--   id         id of the run
--   record     the run's record from the job on
--   gap        'from,last,count': ticks that Redis has lost, to be recorded as missed; '' for none
--   parts      of a shard, to open its tick anew if Redis has lost it: 'N,param,param,...'; else ''
--   next       of a shard or a later attempt: the tick after the run's, ms, for all before may be lost; else
--              ''
--   ended      of a run whose end will be reported: when it ended, ms; else ''
local now, skew, keep, keep_for, server = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local n = (#ARGV - 5) / 8
local function item(i)
  local a = 6 + (i - 1) * 8
  return {job = ARGV[a], digest = ARGV[a + 1], id = ARGV[a + 2], record = ARGV[a + 3], gap = ARGV[a + 4],
    parts = ARGV[a + 5], next = ARGV[a + 6], ended = ARGV[a + 7]}
end
-- end of ARGV
local us, ms = clock()
if clock_off(ms, now, skew) then return {'clock', int(ms)} end
local here = epoch_at(server_id())
if elsewhere(server, here) then return {'server', here} end

-- Sets the cursor behind a tick. Returns 'restored', or the answer to give in its place.
local function step(i, e, c, tick, nxt)
  local cursor, at = tonumber(e.cursor), tonumber(tick)
  if at > ms + AHEAD then return 'lost' end -- Redis' clock is before the tick: nothing is accounted for that is not due
  if not cursor or cursor > at then
    -- A job that was created since has no record of the tick, and no other node can have run the
    -- tick.
    local known = tonumber(e.base)
    if not known then known = (tonumber(e.last) or 0) < at and math.huge or 0 end -- the job had no schedule at first
    if known <= at then return 'lost' end
    -- guard:apart-is-accounted P1 a job that was created anew does not go back to a tick whose run was restored
    if e.base ~= '' and (tonumber(e.last) or 0) < at then e.last = tick end
    return 'apart'
  end
  if e.digest ~= c.digest then return 'superseded' end
  if cursor < at then
    local from, last, n = string.match(c.gap, '^(%d+),(%d+),(%d+)$')
    if from ~= e.cursor then return 'behind' end
    if not pass(k.histories[i], k.kept, e, e.cursor, e.cursor, last, tonumber(n), tick, 'missed', 'failover', '', ms, keep, keep_for) then
      return 'foreign'
    end
    if redis.call('HEXISTS', k.followers, c.job) == 1 then
      notify(k.outbox, c.job, e.cursor, tick, e.cursor, last, tonumber(n), 'missed', ms)
    end
  end
  -- guard:reassert-step P1 a restored run's tick is not granted again
  e.cursor, e.last = nxt, tick
  shed(e, ms)
  if nxt ~= '' then redis.call('ZADD', k.due, nxt, c.job) else redis.call('ZREM', k.due, c.job) end
  return 'restored'
end

-- Whether a run or an open tick of that id was granted after the run r.
local function later(id, r)
  local other = run_of(redis.call('HGET', k.runs, id))
  local t = not other and tick_of(redis.call('HGET', k.waiting, id))
  return other and tonumber(other.token) > tonumber(r.token) or t and tonumber(t.granted) > tonumber(r.granted)
end

-- Removes a lost run's records under other ids, which would be granted again: ids before the run
-- was handed back or had crashed, or the id of a hand-back whose reply its node did not get.
-- Returns whether there was a record, and with it the step of the cursor; and whether an earlier
-- attempt is in flight, whose end is still to come. Or 'lost' when the run was granted anew.
local function before(e, id, r)
  local older, earlier = {}, false
  for _, held in ipairs({{k.runs, k.leases, run_of}, {k.waiting, k.pending, pending_of}}) do
    local all = redis.call('HGETALL', held[1])
    for at = 1, #all, 2 do
      local o = all[at] ~= id and string.find(all[at + 1], '|' .. r.job .. '|' .. r.tick .. '|', 1, true) and held[3](all[at + 1])
      if o and o.job == r.job and o.tick == r.tick and o.shard == r.shard and o.shards == r.shards and o.request == r.request and o.of == r.of then
        if o.token and tonumber(o.token) > tonumber(r.token) then return 'lost' end
        local ahead = tonumber(r.attempt) - tonumber(o.attempt)
        if ahead == 0 or ahead > 0 and not o.token then older[#older + 1] = {held[1], held[2], all[at], o}
        elseif ahead > 0 then earlier = true end
      end
    end
  end
  for _, g in ipairs(older) do
    redis.call('HDEL', g[1], g[3])
    redis.call('ZREM', g[2], g[3])
    if e.open == g[3] then e.open = '' end
    if g[4].prev ~= '' then r.prev, r.next = g[4].prev, g[4].next end
  end
  return #older > 0, earlier
end

-- Opens the tick of a shard again if Redis has lost it. Shards that no node reports are pending
-- then.
local function whole(i, e, c, r)
  local text = redis.call('HGET', k.waiting, r.of)
  if tick_of(text) then return 'restored' end
  local asked = pending_of(text) -- pending: the tick was not opened yet
  if text and not asked then return 'foreign' end
  -- For a job that was defined anew since, it is unknown which shards of the tick have ended. The
  -- chain shows that only for the job's own ticks: a follower's ticks have no chain, and the first
  -- tick of a schedule may lie behind a run by hand.
  local chained = r.request == '' and r.trigger ~= 'after'
  local anew = not asked and chained and (e.base == '' or tonumber(e.base) > tonumber(r.granted))
  if c.parts == '' or anew or find_row(k.histories[i], r.of) then return 'lost' end
  local p = asked or {job = r.job, tick = r.tick, attempt = r.attempt, prev = '', next = '', trigger = r.trigger, request = r.request, payload = r.payload}
  if not asked and r.trigger == 'rerun' then
    -- The report has neither the tick's attempt nor whether it was a step of the cursor; another
    -- shard may.
    return c.gap == '' and e.cursor ~= '' and tonumber(e.cursor) <= tonumber(r.tick) and 'behind' or 'lost'
  end
  -- The tick may have been a run by itself first, handed back before its job had shards.
  local one = {job = r.job, tick = r.tick, shard = '0', shards = '1', attempt = r.attempt, token = r.token, request = r.request, of = '', prev = '', next = ''}
  local found = not asked and before(e, r.of, one)
  if found == 'lost' then return 'lost' end
  if asked then -- the cursor's step was made
  elseif found then p.prev, p.next = one.prev, one.next
  elseif r.trigger == 'schedule' or r.trigger == 'catch_up' then
    local word = step(i, e, c, r.tick, c.next)
    if word ~= 'restored' then return word == 'apart' and 'lost' or word end
    p.prev, p.next = r.tick, c.next
  end
  local open, busy = e.open, e.busy
  open_tick(k, e, r.of, r.mode, c.parts, p, math.min(ms, tonumber(r.granted)))
  if later(open, r) then e.open, e.busy = open, busy end
  return 'restored'
end

-- Whether the history has an attempt of the run's tick; and whether it has this attempt, under
-- another id.
local function recorded(key, r)
  local first = false
  for _, row in ipairs(redis.pcall('LRANGE', key, 0, -1)) do
    if string.find(row, '|' .. r.tick .. '|', 1, true) then
      local kind, tick, shard, _, attempt, _, request, of = string.match(row, ROW_ENDED)
      if kind == 'R' and tick == r.tick and shard == r.shard and attempt == r.attempt and request == r.request and of == r.of then
        return true, true
      end
      first = first or tick == r.tick and request == ''
    end
  end
  return first, false
end

-- Finds the place of a run that was lost: its step of the cursor, or its tick. Returns 'restored',
-- or the answer.
local function place(i, e, c, r, asked)
  local id = c.id
  local first, over = recorded(k.histories[i], r)
  if over then return 'lost' end
  if asked and r.of == '' or e.open == id then return 'restored' end -- the job still waits for the run
  if r.of ~= '' then
    local word = whole(i, e, c, r)
    return word == 'restored' and before(e, id, r) == 'lost' and 'lost' or word
  end
  local ahead = r.prev ~= '' and e.cursor ~= '' and tonumber(e.cursor) <= tonumber(r.tick) -- nothing of it is stored
  if ahead then return step(i, e, c, r.tick, r.next) end
  local found, earlier = before(e, id, r)
  if found == 'lost' then return 'lost' end
  if id == r.request then return r.prev == '' and 'restored' or step(i, e, c, r.tick, r.next) end
  if found or r.prev == '' and (r.trigger ~= 'rerun' or r.request ~= '' or e.cursor == '' or earlier or first) then
    return 'restored'
  end
  if r.prev ~= '' then return step(i, e, c, r.tick, r.next) end
  -- All attempts before this one are lost, and with them the step of the cursor: the step is this
  -- one's.
  if tonumber(e.cursor) <= tonumber(r.tick) and (c.gap == '' or c.next == '') then return 'behind' end
  local word = step(i, e, c, r.tick, c.next)
  if word == 'restored' then r.prev, r.next = r.tick, c.next end
  return word
end

-- The run that was granted last holds the job: the previous holder has ended, and Redis has lost
-- that end.
local function hold(e, id, r)
  if r.of ~= '' or r.mode == 'a' or e.open == id or later(e.open, r) then return end
  e.open, e.busy = id, ''
end

-- Notes for the audit that rows before a restored run may be lost: the end of the previous attempt,
-- or the whole attempt. 'retold' is kept among the counts and is none: the latest tick of which a
-- shard, or an attempt after the first, was restored.
local function note(e, r)
  if r.attempt == '1' and r.of == '' then return end
  local was = tonumber(string.match(',' .. e.counts, ',retold=(%d+)') or 0)
  if tonumber(r.tick) > was then count(e, 'retold', tonumber(r.tick) - was) end
end

-- Whether the row of a run that ended at an instant may have left the history: rows leave when they
-- are too many or too old, and later rows are present then. In a shorter history the row was lost,
-- and the end has to be reported.
local function trimmed(key, ended)
  if ended == '' or redis.call('LLEN', key) < tonumber(keep) and tonumber(ended) >= ms - tonumber(keep_for) then return false end
  local oldest = redis.call('LINDEX', key, 0)
  local at = oldest and string.match(oldest, ROW_AT)
  return at and tonumber(at) > tonumber(ended)
end

-- Completes an entry that was lost and made anew from the record of its run: the cursor's step, the
-- token, and the run as the job's holder.
local function anew(i, e, c, r)
  if tonumber(e.token) >= tonumber(r.token) then return 'restored' end
  if r.prev ~= '' and e.cursor ~= '' and tonumber(e.cursor) <= tonumber(r.tick) then
    local word = step(i, e, c, r.tick, r.next)
    if word ~= 'restored' then return word end
  end
  -- guard:entry-held P1 a job whose entry was lost is still held by its run
  if r.mode ~= 'a' and not later(e.open, r) then e.open, e.busy = r.of ~= '' and r.of or c.id, '' end
  e.token = r.token
  redis.call('HSET', k.jobs, c.job, entry_text(e))
  return 'restored'
end

local function reassert(i, c)
  local job, id = c.job, c.id
  local raw, held = redis.call('HGET', k.jobs, job), redis.call('HGET', k.runs, id)
  local r, e, was = run_of('1|0|0|' .. c.record), entry_of(raw), run_of(held)
  if held and not was or not r then return 'foreign', '' end
  if not raw then return 'unknown', '' end
  if not e then return 'foreign', '' end
  if was and was.token ~= r.token then return 'lost', e.cursor end
  local till = int(ms + r.ttl)
  if not was then
    if find_row(k.histories[i], id) or trimmed(k.histories[i], c.ended) then return 'ended', e.cursor end
    local asked = redis.call('HGET', k.waiting, id)
    if tick_of(asked) then return 'lost', e.cursor end -- opened since, under a definition with shards
    if asked and not pending_of(asked) then return 'foreign', '' end
    local word = place(i, e, c, r, asked)
    if word == 'apart' then r.prev, r.next, word = '', '', 'restored' end
    if word ~= 'restored' then return word, e.cursor end
    redis.call('HDEL', k.waiting, id)
    redis.call('ZREM', k.pending, id)
    hold(e, id, r)
    note(e, r)
    e.token = int(math.max(e.token, r.token))
    redis.call('HSET', k.jobs, job, entry_text(e))
    if r.of ~= '' then r.payload = '' end -- kept with the tick
  else
    r = was
    local word = anew(i, e, c, r)
    if word ~= 'restored' then return word, e.cursor end
  end
  r.until_, r.beat = till, int(was and was.beat + 1 or 0)
  redis.call('HSET', k.runs, id, run_text(r))
  redis.call('ZADD', k.leases, till, id)
  return was and 'known' or 'restored', e.cursor
end

local out = {}
for i = 1, n do out[i * 2 - 1], out[i * 2] = reassert(i, item(i)) end
return out
