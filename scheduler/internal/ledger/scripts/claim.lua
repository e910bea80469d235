-- Claims a batch: each item asks "may I run this?" and gets an answer of its own. An item is
-- the next tick of a job (kind t), a pending run (kind p), or a shard of an open tick, which is a pending run as
-- well (kind s). Asked again with the same run id by the same node, a claim gives the same grant. A tick of a
-- sharded job, or a pending run of one, is not granted but opened: its shards are pending then, at once.
-- KEYS[1] jobs  KEYS[2] due  KEYS[3] runs  KEYS[4] leases  KEYS[5] pending  KEYS[6] waiting
-- KEYS[7] kept  KEYS[8] cancels  KEYS[9] outbox  KEYS[10] followers  KEYS[10+i] history of item i's job, and the
-- last of KEYS the partition's gate
-- ARGV[1] the caller's idea of Redis' time, ms   ARGV[2] tolerated difference, ms
-- ARGV[3] node id  ARGV[4] node name  ARGV[5] rows to keep  ARGV[6] age to keep, ms
-- ARGV[7] id of the server that the caller knows, '' for any  ARGV[8] ms that a lease lasts at most until it is renewed
-- then for each item, in the order of the history keys, one of two forms. A plain tick has 6: 'ttl ms|overlap mode (s q r a)|
--   most attempts|trigger', job, digest, run, tick (to run, and the cursor that the caller sees), next (where the cursor goes)
-- any other item has 13: kind, job, digest, run, ttl ms, overlap mode, most attempts;
--   of kind t: from (the cursor the caller sees), passes, tick (to run, '' for none), next ('' for none), trigger. Passes
--     are ticks that will not run, from 'from' on without a gap, each 'outcome,reason,first,last,count,next' and ended by ';'
--   of kind p: a reason for which to record it as missed instead, or '', and four times ''; it is for runs
--     that follow another job's and that nobody was granted yet, and for ticks that were handed back
--   and of a job with several shards, kinds t and p: 'N,param,param,...', else ''. The params are escaped
-- Returns {'clock', redis ms} and does nothing when the caller's idea of time is wrong, {'server', id} when it knows
-- another server. Else first one text: for each item the token of a plain tick that was granted for the time that
-- a lease begins with, or '', parted by commas. Then the server's clock, ms, and four for each item whose text is '': word, token, value, record
--   granted     token, ms left, record of the run (kind t: its attempt, '' for 1)
--   opened      '', cursor, tick     the tick is open, by this claim or by another one of the same tick: the id of its
--                                    shard i is tick .. '.' .. i
--   skipped     '', cursor, ''       the job is held: the tick was recorded as skipped(overlap)
--   passed      '', cursor, ''       nothing to run: the passes were recorded; of a pending run its outcome was, and
--                                    stands here, 'outcome,reason'
--   moved       '', cursor, 'pause|busy'   the cursor stands elsewhere, or passes and tick do not fit
--                                    these windows, or the pending run is gone: plan anew
--   early       '', redis ms, ''     the tick is not due in the next 500 ms, or what is passed is not due yet
--   held        '', run, ''          another run holds the job, and the tick has to wait for it, or is not due: ask again;
--                                    'a pause' when that holds a pending run, 'full outbox' when followers
--                                    have not been told of too much, 'full partition' when too many runs wait
--   superseded  '', digest, ''       another definition is the stored one
--   closed      '', 'state|move|words', ''   a move has closed the partition: it grants nothing
--   unknown     '', '', ''           no such job
--   foreign     '', '', ''           a record that this version does not understand
local now, skew, node, name, keep, keep_for = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local us, ms = clock()
-- guard:claim-clock P1 a claim that was held up, or whose sender's clock is wrong, grants nothing
if astray(ms, now, skew) then return {'clock', int(ms)} end
local here = server_id()
-- guard:claim-server P1 a server that may have lost grants gives none before it was told of them
if elsewhere(ARGV[7], here) then return {'server', here} end
local shut
-- guard:claim-gate P7 a partition that a move has closed grants nothing
shut = closed(KEYS[#KEYS])
local short = tonumber(ARGV[8])
local HEAD, FIRST, OUTBOX_MAX, PENDING_MAX = 8, 10, 10000, 10000
local kept, cancels, outbox, followers = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local n = #KEYS - FIRST - 1
local names, at = {}, {} -- of each item: its job, and where it stands in ARGV
local a = HEAD + 1
for i = 1, n do
  names[i], at[i] = ARGV[a + 1], a
  a = a + (#ARGV[a] == 1 and 13 or 6)
end
local raw = redis.call('HMGET', KEYS[1], unpack(names))
local followed = redis.call('EXISTS', followers) == 1 and redis.call('HMGET', followers, unpack(names)) or {}
local saved, due, runs, leases = {}, {}, {}, {}
local granted, untils = int(ms), {} -- when a lease ends that is granted now, by ttl

-- When a lease ends that is granted now, of a tick that is due at an instant.
local function lapses(at, ttl)
  local from = math.max(ms, at)
  local till = from == ms and untils[ttl]
  if not till then
    local lasts = tonumber(ttl)
    -- guard:lease-begins-short P6 a node that dies soon after a grant blocks the job for seconds and not for its ttl
    lasts = math.min(lasts, short)
    till = int(from + lasts)
    if from == ms then untils[ttl] = till end
  end
  return till
end

-- Whether the tick at an instant is not to be granted yet, or ticks up to another one not to be passed.
local function early(at, passed)
  -- guard:tick-due P1 nothing is granted long before it is due by Redis' clock, and nothing is passed before
  if at > ms + AHEAD or passed > ms then return true end
  return false
end

-- Whether the caller has seen another cursor than the one that stands.
local function apart(stands, seen)
  -- guard:cursor-compare P1 a tick is granted only from the cursor that stands
  if stands ~= seen then return true end
  return false
end

-- Whether the caller has another definition than the stored one.
local function another(stored, digest)
  -- guard:definition-compare P7 only a node that has the stored definition is granted anything
  if stored ~= digest then return true end
  return false
end

-- The fast path: plain ticks of jobs that are idle, not paused and not set back. It takes entries apart by the places of what
-- is known of them, and reads once what the jobs of a batch share. Whatever it does not know is left to the
-- other path, which decides the same, and whose code is not even made while nothing is left.
local find, sub, match, concat = string.find, string.sub, string.match, table.concat
local tokens, left, seen, twice, size = {}, {}, {}, false, 0
local idle = '|' .. here .. '||' -- in an entry: this server gave the last token, and nothing holds the job
local heads, mids = {}, {} -- what was read, by its text: of revision and token, of base and last
local terms, tick, nxt, can, mode, due_at, was, becomes, before, behind, ends

-- What grants of one tick and the same terms share.
local function share()
  local ttl, most, trigger
  can = false
  ttl, mode, most, trigger = match(terms, '^(%d+)|([sqra])|(%d+)|(.*)$')
  if not ttl then return end
  due_at = tonumber(tick)
  if tonumber(nxt) <= due_at or early(due_at, 0) then return end
  can, ends = true, lapses(due_at, ttl)
  was, becomes, before = '1|' .. tick .. '|', '1|' .. nxt .. '|', '1|' .. ends .. '|0|'
  behind = '|' .. node .. '|' .. name .. '|' .. ttl .. '|' .. tick .. '|' .. nxt .. '|' .. trigger .. '||' .. granted .. '|' .. mode .. '|' .. most .. '|||'
  heads, mids = {}, {}
end

-- Of a revision and a last token: the new one, what stands in the entry from the revision to the server, and what stands in
-- the run from the tick on.
local function head_of(revision, token, rid)
  token = next_token(token, rid, us, here, GUARD)
  return {token, '|' .. revision .. '|' .. token .. '|' .. here .. '|', '|' .. tick .. '|0|1|1|' .. token .. behind}
end

-- Of base and last: what stands in the entry from the base to the counts.
local function mid_of(base) return '|' .. base .. '|' .. tick .. '||||' end

-- Reads an entry from the digest's end on: head, mid and counts, or nil.
local function usual(s, at)
  local from, to = find(s, idle, at, true)
  local a, b = find(s, '||||', to or at, true) -- neither paused, nor busy lately, nor set back
  if from and a and a > to and not find(s, '|', b + 1, true) then
    local head, mid = sub(s, at, from - 1), sub(s, to + 1, a - 1)
    if heads[head] == nil then
      local revision, token = match(head, '^|([^|]*)|(%d+)$')
      heads[head] = revision and head_of(revision, token, here) or false
    end
    if mids[mid] == nil then
      local base = match(mid, '^(%d*)|%d*$')
      mids[mid] = base and mid_of(base) or false
    end
    if heads[head] and mids[mid] then return heads[head], mids[mid], sub(s, b + 1) end
  end
  local revision, token, rid, base, window, counts =
    match(s, '^|([^|]*)|(%d+)|([^|]*)||(%d*)|%d*||([%d,]*)||([^|]*)$', at)
  if not revision then return nil end
  if window ~= '' then
    local since, till = pair(window) -- a tick in it is judged by the other path
    if mode == 'a' or not since or mode ~= 's' and due_at >= since and due_at < till then return nil end
  end
  return head_of(revision, token, rid), mid_of(base), counts
end

local full -- whether no more word may wait for those who follow; asked when it matters
local function no_room()
  if full == nil then full = redis.call('ZCARD', outbox) >= OUTBOX_MAX end
  return full
end

for i = 1, n do
  local job, a, s, head, mid, counts = names[i], at[i], raw[i], nil, nil, nil
  if seen[job] then
    twice = true
  elseif s and not shut and #ARGV[a] > 1 then
    if ARGV[a] ~= terms or ARGV[a + 4] ~= tick or ARGV[a + 5] ~= nxt then
      terms, tick, nxt = ARGV[a], ARGV[a + 4], ARGV[a + 5]
      share()
    end
    local digest = ARGV[a + 2]
    if can and (apart(sub(s, 1, #was), was) or another(sub(s, #was + 1, #was + #digest), digest)) then s = nil end
    if s and can and not (followed[i] and no_room()) then head, mid, counts = usual(s, #was + #digest + 1) end
    if head then
      local id = ARGV[a + 3]
      runs[size + 1], runs[size + 2] = id, before .. job .. head[3]
      leases[size + 1], leases[size + 2] = ends, id
      saved[size + 1], saved[size + 2] = job, becomes .. digest .. head[2] .. (mode == 'a' and '' or id) .. mid .. counts
      due[size + 1], due[size + 2] = nxt, job
      size = size + 2
    end
  end
  if head then tokens[i] = head[1]
  else
    left[#left + 1], tokens[i] = i, ''
  end
  seen[job] = true
end
if size > 0 then
  redis.call('HSET', KEYS[3], unpack(runs))
  redis.call('ZADD', KEYS[4], unpack(leases))
  redis.call('HSET', KEYS[1], unpack(saved))
  redis.call('ZADD', KEYS[2], unpack(due))
end
if #left == 0 then return {concat(tokens, ','), granted} end

-- The other path knows everything.
if twice then raw = redis.call('HMGET', KEYS[1], unpack(names)) end -- a second item of one job must see what the first was granted
local k = {runs = KEYS[3], pending = KEYS[5], waiting = KEYS[6], kept = kept, cancels = cancels, outbox = outbox, followers = followers}
local out, place = {concat(tokens, ','), granted}, {}
local entries, changed, over, taken = {}, {}, {}, {}
saved, due, runs, leases = {}, {}, {}, {}
for j, i in ipairs(left) do place[i] = j * 4 - 1 end

-- An item as the 13 that it may be spelt by.
local function item(i)
  local a = at[i]
  if #ARGV[a] == 1 then return {unpack(ARGV, a, a + 12)} end
  local ttl, mode, most, trigger = match(ARGV[a], '^(%d+)|(%l)|(%d+)|(.*)$')
  local tick = ARGV[a + 4]
  return {'t', names[i], ARGV[a + 2], ARGV[a + 3], ttl, mode, most, tick, '', tick, ARGV[a + 5], trigger, ''}
end

local function answer(i, word, token, value, record)
  local at = place[i]
  out[at], out[at + 1], out[at + 2], out[at + 3] = word, token, value, record
end

-- Writes a lease, in the order that run_of reads.
local function grant(e, id, ttl, mode, most, job, tick, shard, shards, attempt, prev, nxt, trigger, request, of, param, payload)
  e.token, e.rid = next_token(e.token, e.rid, us, here, GUARD), here
  if of ~= '' then -- the open tick holds the job
    if mode ~= 'a' and e.open == '' then e.open, e.busy = of, '' end
  elseif mode == 'a' then
    if e.open == id then e.open = '' end
  elseif e.open ~= id then
    e.open, e.busy = id, ''
  end
  local till = lapses(tonumber(tick), ttl)
  local text = '1|' .. till .. '|0|' .. job .. '|' .. tick .. '|' .. shard .. '|' .. shards .. '|' .. attempt .. '|' .. e.token
    .. '|' .. node .. '|' .. name .. '|' .. ttl .. '|' .. prev .. '|' .. nxt .. '|' .. trigger .. '|' .. request
    .. '|' .. granted .. '|' .. mode .. '|' .. most .. '|' .. of .. '|' .. param .. '|' .. payload
  local at = #runs
  runs[at + 1], runs[at + 2] = id, text
  leases[at + 1], leases[at + 2] = till, id
  return text, int(till - ms)
end

-- The payload of a shard is its tick's; it ends the answer's record.
local function carried(of)
  local t = of ~= '' and tick_of(redis.call('HGET', KEYS[6], of))
  return t and t.payload or ''
end

-- The same grant again, when this very claim was granted before and its answer got lost.
local function repeated(i, e, id, kind, mode)
  if e.open ~= id and mode ~= 'a' and kind ~= 's' then return false end
  local text = redis.call('HGET', KEYS[3], id)
  local r = run_of(text)
  if not r or r.node ~= node or r.job ~= names[i] then return false end
  answer(i, 'granted', r.token, int(math.max(0, r.until_ - ms)), kind ~= 't' and text .. carried(r.of) or r.attempt == '1' and '' or r.attempt)
  return true
end

local function opened(i, e, id)
  answer(i, 'opened', '', e.cursor, id)
  return true
end

-- A tick that is open already: by this very claim, or for a tick by another node's.
local function is_open(i, e, id)
  local t = tick_of(redis.call('HGET', KEYS[6], id))
  return t and t.job == names[i] and opened(i, e, id)
end

-- Whether the record of the run that holds the job is gone, of which scripts know nothing: somebody deleted it, or Redis dropped it.
-- Nobody could ever end that run.
local function dangling(e)
  return redis.call('HEXISTS', KEYS[3], e.open) == 0 and redis.call('HEXISTS', KEYS[6], e.open) == 0
end

local function crowded(parts)
  return parts ~= '' and redis.call('ZCARD', KEYS[5]) + tonumber(string.match(parts, '^%d+')) > PENDING_MAX
end

-- When what holds the job was granted, or opened; nil when that is pending.
local function since(e)
  local r = run_of(redis.call('HGET', KEYS[3], e.open)) or tick_of(redis.call('HGET', KEYS[6], e.open))
  return r and tonumber(r.granted)
end

-- A tick overlaps the run that holds the job if it came due while that run was going. A tick that
-- was due before the run was granted is merely late: it waits for the run and is not skipped.
local function overlaps(e, at)
  local from = since(e) or pair(e.busy) -- of a pending holder, when it was granted first
  return not from or from <= at
end

-- With overlap replace, a tick that comes due while a run is going has it ended.
local function replace(e, mode, at)
  local going = mode == 'r' and (redis.call('HEXISTS', KEYS[3], e.open) == 1 or tick_of(redis.call('HGET', KEYS[6], e.open)))
  if going and overlaps(e, at) then raise(cancels, e.open, ms, '', '') end
end

-- Reads what a claim passes. Returns 'held' when ticks are passed as missed that wait behind a run which
-- is going ('early' if they are not due), and nil when that is no step from the cursor to the tick, or does
-- not fit the job's windows: what lies in the pause is passed as paused and nothing else is; of the
-- busy window's ticks only the latest runs, and the others are passed as overlapping, or as too
-- late for start_within.
local function steps(e, mode, from, passes, tick, nxt, trigger)
  local list, at, pf, pt, bf, bt, going, overlap = {}, from, nil, nil, nil, nil, nil, false
  local waits = mode == 'q' or mode == 'r'
  if e.pause ~= '' then pf, pt = pair(e.pause) end
  if e.busy ~= '' and waits then bf, bt = pair(e.busy) end
  if e.open ~= '' and waits then
    going = bf or since(e)
  end
  for outcome, reason, first, last, num, after in string.gmatch(passes, '([^,;]+),([^,;]+),(%d+),(%d+),(%d+),(%d*);') do
    local f, l = tonumber(first), tonumber(last)
    if first ~= at or l < f or (after ~= '' and tonumber(after) <= l) then return nil end
    if outcome == 'paused' then
      if not pf or f < pf or l >= pt then return nil end
    elseif pf and l >= pf and f < pt then return nil end
    -- Ticks behind a run that was going are not late through nobody's being there.
    if outcome == 'missed' and reason ~= 'start_within' and reason ~= 'no node' then
      if going and l >= going then return l > ms and 'early' or 'held' end
      if bf and l >= bf and f < bt then return nil end
    end
    if outcome == 'skipped' then
      if not bf or f < bf or l >= bt or tick == '' then return nil end
      overlap = true
    end
    list[#list + 1] = {outcome, reason, first, last, tonumber(num), after}
    at = after
  end
  if tick == '' then return nxt == at and #list > 0 and list or nil end
  local t = tonumber(tick)
  -- guard:tick-follows-passes P2 no tick vanishes between those that are passed and the one that runs
  if tick ~= at or (nxt ~= '' and tonumber(nxt) <= t) then return nil end
  -- guard:pause-holds P2 a tick of a pause is recorded as paused, whatever the caller knew
  if pf and t >= pf and t < pt then return nil end
  local later = tonumber(nxt) or math.huge
  local latest = bf and t >= bf and t < bt
  if overlap and not latest then return nil end
  if latest and (trigger == 'catch_up' or later < bt and not (pf and later >= pf and later < pt)) then return nil end
  return list
end

local function moved(i, e) answer(i, 'moved', '', e.cursor, e.pause .. '|' .. e.busy) return false end

-- Records ticks that will not run, and tells it to the jobs that follow.
local function record(i, e, prev, first, last, num, nxt, outcome, reason)
  if not pass(KEYS[FIRST + i], kept, e, prev, first, last, num, nxt, outcome, reason, '', ms, keep, keep_for) then return false end
  if followed[i] then tell(outbox, names[i], prev, nxt, first, last, num, outcome, ms) end
  return true
end

local function step_to(e, job, nxt, last)
  e.cursor, e.last = nxt, last
  shed(e, ms)
  if nxt ~= '' then
    local at = #due
    due[at + 1], due[at + 2] = nxt, job
  else
    over[#over + 1] = job
  end
end

-- Both return whether the entry changed.
local function claim_tick(i, e, c)
  local _, job, _, id, ttl, mode, most, from, passes, tick, nxt, trigger, parts = unpack(c)
  if from == '' or apart(e.cursor, from) then
    local t = parts ~= '' and tick_of(redis.call('HGET', KEYS[6], e.open))
    if t and t.tick == tick then opened(i, e, e.open) return false end
    return moved(i, e)
  end
  local list = steps(e, mode, from, passes, tick, nxt, trigger)
  if not list then return moved(i, e) end
  if list == 'early' then answer(i, 'early', '', granted, '') return false end
  if list == 'held' then
    replace(e, mode, ms)
    answer(i, 'held', '', e.open, '')
    return false
  end
  local last = tick ~= '' and tick or list[#list][4]
  local at, passed = tonumber(last), #list > 0 and tonumber(list[#list][4]) or 0
  if early(at, passed) then answer(i, 'early', '', granted, '') return false end
  local held = false
  -- guard:lease-held P4 while a run holds the job, no other is granted
  if tick ~= '' and mode ~= 'a' and e.open ~= '' then held = not dangling(e) end
  if held and (at > ms or mode ~= 's' or not overlaps(e, at)) then -- whether it overlaps is judged when it is due
    if at <= ms then replace(e, mode, at) end
    answer(i, 'held', '', e.open, '')
    return false
  end
  local attempt = again(e, at)
  -- A run that ended before the cursor was set back is not granted anew under its id.
  if attempt ~= '1' and find_row(KEYS[FIRST + i], id) then return moved(i, e) end
  if followed[i] and redis.call('ZCARD', outbox) >= OUTBOX_MAX then answer(i, 'held', '', 'full outbox', '') return false end
  if tick ~= '' and not held and crowded(parts) then answer(i, 'held', '', 'full partition', '') return false end
  -- guard:passes-recorded P2 ticks that will not run get a row in the step that passes them
  for _, p in ipairs(list) do
    if not record(i, e, p[3], p[3], p[4], p[5], p[6], p[1], p[2]) then answer(i, 'foreign', '', '', '') return false end
  end
  if held and not record(i, e, tick, tick, tick, 1, nxt, 'skipped', 'overlap') then answer(i, 'foreign', '', '', '') return false end
  step_to(e, job, nxt, last)
  if held or tick == '' then
    answer(i, held and 'skipped' or 'passed', '', nxt, '')
    return true
  end
  if parts ~= '' then
    open_tick(k, e, id, mode, parts, {job = job, tick = tick, attempt = attempt, prev = tick, next = nxt, trigger = trigger, request = '', payload = ''}, ms)
    return opened(i, e, id)
  end
  local _, left = grant(e, id, ttl, mode, most, job, tick, '0', '1', attempt, tick, nxt, trigger, '', '', '', '')
  answer(i, 'granted', e.token, left, attempt == '1' and '' or attempt)
  return true
end

-- A pending run of a job that follows another, if nobody was granted it yet, is recorded instead of run
-- when it is too late, when the job is paused, or when with overlap skip another run is going. Others wait.
-- Of the job's own, a tick that was handed back may be too late.
local function instead(e, p, id, mode, drop)
  local after, back = p.trigger == 'after' and p.holds == '', p.trigger ~= 'after' and p.prev ~= ''
  if (after or back) and drop ~= '' then return 'missed', drop end
  if p.request == '' and paused(e, ms) then
    if p.holds ~= '' then return 'held', 'a pause' end
    if after then return 'paused', 'paused' end
  end
  if mode == 'a' or e.open == '' or e.open == id or dangling(e) then return nil end
  if after and overlaps(e, tonumber(p.at)) then
    if mode == 's' then return 'skipped', 'overlap' end
    replace(e, mode, tonumber(p.at))
  end
  return 'held', e.open
end

-- A shard of an open tick: nothing holds it back but the wish that the tick ends. Then it is recorded as cancelled.
local function claim_shard(i, e, id, mode, p)
  if strange(KEYS[6], p.of) then answer(i, 'foreign', '', '', '') return nil end
  -- A tick that was opened with overlap allow does not hold the job; under another policy it has to, from now on.
  if mode ~= 'a' and e.open ~= '' and e.open ~= p.of and not dangling(e) then answer(i, 'held', '', e.open, '') return nil end
  if mode ~= 'a' and e.open ~= p.of then e.open = '' end
  local flag = wanted(cancels, id, p)
  if not flag then return true end
  p.token, p.node, p.name = '0', '', ''
  local reason = reason_of(flag)
  if not append(KEYS[FIRST + i], kept, row_text(id, p, 'cancelled', reason, granted, granted, '0', ''), e, ms, keep, keep_for) then
    answer(i, 'foreign', '', '', '')
    return nil
  end
  count(e, 'cancelled', 1)
  taken[#taken + 1] = id
  part(k, KEYS[FIRST + i], e, p, 'cancelled',
    ms, ms, keep, keep_for)
  answer(i, 'passed', '', e.cursor, 'cancelled,' .. reason)
  return false
end

local function claim_pending(i, e, c)
  local _, _, _, id, ttl, mode, most, drop, _, _, _, _, parts = unpack(c)
  local text = redis.call('HGET', KEYS[6], id)
  if not text then return moved(i, e) end
  local p = pending_of(text)
  if not p and is_open(i, e, id) then return false end -- by a definition that had shards
  if not p and tick_of(text) then return moved(i, e) end
  -- guard:foreign-record P8 a record of a newer version is left alone
  if not p then answer(i, 'foreign', '', '', '') return false end
  if p.job ~= names[i] then return moved(i, e) end
  if tonumber(p.at) > ms then answer(i, 'early', '', granted, '') return false end
  local outcome, reason = nil, nil
  if p.of ~= '' then
    local go = claim_shard(i, e, id, mode, p)
    if not go then return go == false end
  else
    outcome, reason = instead(e, p, id, mode, drop)
  end
  if outcome == 'held' then answer(i, 'held', '', reason, '') return false end
  if outcome and not record(i, e, p.prev, p.tick, p.tick, 1, p.next, outcome, reason) then answer(i, 'foreign', '', '', '') return false end
  if not outcome and p.of == '' and p.shards == '1' and parts ~= '' then
    if crowded(parts) then answer(i, 'held', '', 'full partition', '') return false end
    open_tick(k, e, id, mode, parts, p, ms)
    return opened(i, e, id)
  end
  taken[#taken + 1] = id
  if outcome then
    if e.open == id then let_go(e, ms) end
    answer(i, 'passed', '', e.cursor, outcome .. ',' .. reason)
    return true
  end
  local run, left = grant(e, id, ttl, mode, most, p.job, p.tick, p.shard, p.shards, p.attempt, p.prev, p.next, p.trigger, p.request, p.of, p.param, p.payload)
  answer(i, 'granted', e.token, left, run .. carried(p.of))
  return true
end

-- What takes away comes last: a Redis that has no memory left refuses what adds, and then nothing is done.
local function flush()
  if #runs > 0 then
    redis.call('HSET', KEYS[3], unpack(runs))
    redis.call('ZADD', KEYS[4], unpack(leases))
  end
  -- guard:pending-taken P1 a pending run is granted once
  if #taken > 0 then
    redis.call('HDEL', KEYS[6], unpack(taken))
    redis.call('ZREM', KEYS[5], unpack(taken))
  end
  runs, leases, taken = {}, {}, {}
end

for _, i in ipairs(left) do
  local c = item(i)
  local kind, job, digest, id = unpack(c, 1, 4)
  if entries[job] then flush() end -- a second item of one job must see what the first was granted
  local e = entries[job] or entry_of(raw[i])
  entries[job] = e
  local known = false
  -- guard:claim-repeated P1 a claim that is asked again finds its grant, so that a lost reply costs no tick
  if e then known = repeated(i, e, id, kind, c[6]) end
  if known then -- and answered
  elseif shut then answer(i, 'closed', '', shut, '')
  elseif not raw[i] then answer(i, 'unknown', '', '', '')
  elseif not e then answer(i, 'foreign', '', '', '')
  elseif another(e.digest, digest) then answer(i, 'superseded', '', e.digest, '')
  elseif c[13] == '' or not is_open(i, e, id) then
    local claim = kind == 't' and claim_tick or claim_pending
    if claim(i, e, c) then changed[job] = e end
  end
end
flush()
for _, i in ipairs(left) do
  local job = names[i]
  if changed[job] then
    saved[#saved + 1], saved[#saved + 2] = job, entry_text(changed[job])
    changed[job] = nil
  end
end
if #saved > 0 then redis.call('HSET', KEYS[1], unpack(saved)) end
if #due > 0 then redis.call('ZADD', KEYS[2], unpack(due)) end
if #over > 0 then redis.call('ZREM', KEYS[2], unpack(over)) end
return out
