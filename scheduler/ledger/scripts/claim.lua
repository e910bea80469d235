-- Claims a batch: each item asks "may I run this?" and gets an answer of its own. An item is
-- the next tick of a job (kind t), or a pending run (kind p). Asked again with the same run id
-- by the same node, a claim gives the same grant.
-- KEYS[1] jobs  KEYS[2] due  KEYS[3] runs  KEYS[4] leases  KEYS[5] pending  KEYS[6] waiting
-- KEYS[6+i] history of item i's job
-- ARGV[1] the caller's idea of Redis' time, ms   ARGV[2] tolerated difference, ms
-- ARGV[3] node id  ARGV[4] node name  ARGV[5] rows to keep  ARGV[6] age to keep, ms
-- then 11 for each item: kind, job, digest, run, ttl ms; and for kind t (else ''):
--   from (the cursor the caller sees), until and count (last and number of ticks from 'from' on
--   that are missed, '' and 0 for none), tick (to run), next (the tick after it), trigger
-- Returns {'clock', redis ms} and does nothing when the caller's idea of time is wrong, else
-- four for each item: word, token, value, record
--   granted     token, ms left, record of the run (kind p only)
--   skipped     '', cursor, ''       the job is held: the tick was recorded as skipped(overlap)
--   moved       '', cursor, ''       the cursor stands elsewhere, or the pending run is gone
--   early       '', redis ms, ''     the tick is not due yet
--   held        '', run, ''          another run holds the job, and the tick was due before it or
--                                    is a pending run: ask again
--   superseded  '', digest, ''       another definition is the stored one
--   unknown     '', '', ''           no such job
--   foreign     '', '', ''           a record that this version does not understand
local now, skew, node, name, keep, keep_for = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local us, ms = clock()
if astray(ms, now, skew) then return {'clock', int(ms)} end
local here = server_run_id()
local n = (#ARGV - 6) / 11
local names, ids = {}, {}
for i = 1, n do names[i], ids[i] = ARGV[7 + (i - 1) * 11 + 1], ARGV[7 + (i - 1) * 11 + 3] end
local raw = redis.call('HMGET', KEYS[1], unpack(names))
local entries, out = {}, {}
local saved, due, runs, leases = {}, {}, {}, {}
local changed = {}

local function answer(i, word, token, value, record)
  local at = (i - 1) * 4
  out[at + 1], out[at + 2], out[at + 3], out[at + 4] = word, token, value, record
end

local granted, untils = int(ms), {}

-- Writes a lease. It is spelt out here, in the order that run_of reads, because this is the hottest line
-- of the system and a table a grant costs a fifth of a claim.
local function grant(e, id, ttl, job, tick, shard, shards, attempt, prev, nxt, trigger, request, payload)
  e.token, e.rid, e.open = next_token(e.token, e.rid, us, here, GUARD), here, id
  local till = untils[ttl]
  if not till then
    till = int(ms + ttl)
    untils[ttl] = till
  end
  local text = '1|' .. till .. '|0|' .. job .. '|' .. tick .. '|' .. shard .. '|' .. shards .. '|' .. attempt .. '|' .. e.token
    .. '|' .. node .. '|' .. name .. '|' .. ttl .. '|' .. prev .. '|' .. nxt .. '|' .. trigger .. '|' .. request
    .. '|' .. granted .. '|' .. payload
  local at = #runs
  runs[at + 1], runs[at + 2] = id, text
  leases[at + 1], leases[at + 2] = till, id
  return text
end

-- The same grant again, when this very claim was granted before and its answer got lost.
local function repeated(i, e, id, kind)
  if e.open ~= id then return false end
  local text = redis.call('HGET', KEYS[3], id)
  local r = run_of(text)
  if not r or r.node ~= node then return false end
  answer(i, 'granted', r.token, int(math.max(0, r.until_ - ms)), kind == 'p' and text or '')
  return true
end

-- A tick overlaps the run that holds the job if it came due while that run was going. A tick that
-- was due before the run was granted is merely late: it waits for the run and is not skipped.
local function overlaps(e, at)
  local r = run_of(redis.call('HGET', KEYS[3], e.open))
  return not r or tonumber(r.granted) <= at
end

-- Both return whether the entry changed.
local function claim_tick(i, e, a)
  local job, id, ttl, from, last, count, tick, nxt, trigger =
    ARGV[a + 1], ARGV[a + 3], ARGV[a + 4], ARGV[a + 5], ARGV[a + 6], ARGV[a + 7], ARGV[a + 8], ARGV[a + 9], ARGV[a + 10]
  if e.cursor ~= from or from == '' then answer(i, 'moved', '', e.cursor, '') return false end
  local at = tonumber(tick)
  -- A step leads from the cursor to a tick and on behind it; any other is not one.
  if tick ~= from and at < tonumber(from) or nxt ~= '' and tonumber(nxt) <= at then answer(i, 'moved', '', e.cursor, '') return false end
  if at > ms then answer(i, 'early', '', granted, '') return false end
  if e.open ~= '' and not overlaps(e, at) then answer(i, 'held', '', e.open, '') return false end
  if count ~= '0' and not pass(KEYS[6 + i], e, from, last, tonumber(count), tick, 'missed', 'late', ms, keep, keep_for)
    or e.open ~= '' and not pass(KEYS[6 + i], e, tick, tick, 1, nxt, 'skipped', 'overlap', ms, keep, keep_for) then
    answer(i, 'foreign', '', '', '')
    return false
  end
  e.cursor, e.last = nxt, tick
  if nxt ~= '' then
    local at = #due
    due[at + 1], due[at + 2] = nxt, job
  else
    redis.call('ZREM', KEYS[2], job)
  end
  if e.open ~= '' then
    answer(i, 'skipped', '', nxt, '')
    return true
  end
  grant(e, id, ttl, job, tick, '0', '1', '1', tick, nxt, trigger, '', '')
  answer(i, 'granted', e.token, ttl, '')
  return true
end

local function claim_pending(i, e, a)
  local id, ttl = ARGV[a + 3], ARGV[a + 4]
  local text = redis.call('HGET', KEYS[6], id)
  if not text then answer(i, 'moved', '', e.cursor, '') return false end
  local p = pending_of(text)
  if not p then answer(i, 'foreign', '', '', '') return false end
  if tonumber(p.at) > ms then answer(i, 'early', '', granted, '') return false end
  if e.open ~= '' and e.open ~= id then answer(i, 'held', '', e.open, '') return false end
  local record = grant(e, id, ttl, p.job, p.tick, p.shard, p.shards, p.attempt, p.prev, p.next, p.trigger, p.request, p.payload)
  redis.call('HDEL', KEYS[6], id)
  redis.call('ZREM', KEYS[5], id)
  answer(i, 'granted', e.token, ttl, record)
  return true
end

local function flush()
  if #runs == 0 then return end
  redis.call('HSET', KEYS[3], unpack(runs))
  redis.call('ZADD', KEYS[4], unpack(leases))
  runs, leases = {}, {}
end

for i = 1, n do
  local a = 7 + (i - 1) * 11
  local kind, job, digest, id = ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3]
  if entries[job] then flush() end -- a second item of one job must see what the first was granted
  local e = entries[job] or entry_of(raw[i])
  entries[job] = e
  if not raw[i] then answer(i, 'unknown', '', '', '')
  elseif not e then answer(i, 'foreign', '', '', '')
  elseif not repeated(i, e, id, kind) then
    if e.digest ~= digest then answer(i, 'superseded', '', e.digest, '')
    else
      local claim = kind == 't' and claim_tick or claim_pending
      if claim(i, e, a) then changed[job] = e end
    end
  end
end
flush()
for i = 1, n do
  local job = names[i]
  if changed[job] then
    saved[#saved + 1], saved[#saved + 2] = job, entry_text(changed[job])
    changed[job] = nil
  end
end
if #saved > 0 then redis.call('HSET', KEYS[1], unpack(saved)) end
if #due > 0 then redis.call('ZADD', KEYS[2], unpack(due)) end
return out
