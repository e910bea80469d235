-- Stands before every ledger script: the records' codecs, Redis' clock. Before
-- it stands the token rule, which locks and runs share.
-- All records begin with their format version, '1'. A record that does not decode is foreign
-- (written by a newer node, or by nobody we know): scripts answer 'foreign' and leave it alone.
--
-- entry    1|cursor|digest|revision|token|rid|open|base|last|pause|busy|again|counts
--          cursor  earliest tick not accounted for, ms; '' when the schedule has no more
--          token, rid  state of the token rule;  open  run id that holds the job, leased or pending
--          base  where the recorded chain begins (moves on when history is trimmed)
--          last  latest instant ever accounted for, ms
--          pause  'from,to': ticks in it are recorded as paused; to is '' while nobody has ended it
--          busy  'from,to': from the grant to the end of the last run that held a job with overlap queue or
--          replace; '' again from the grant of the next one
--          again  'until,attempt': ticks before until were accounted for once; granted anew they are that attempt
--          counts  'succeeded=12,missed=3': ticks and runs by how they ended; and retold, see reassert.lua
-- run      1|until|beat|job|tick|shard|shards|attempt|token|node|name|ttl|prev|next|trigger|request|granted|mode|most|of|param|payload
--          mode  overlap policy: s(kip) q(ueue) r(eplace) a(llow);  most  the last attempt that a crash may lead to
--          request  of a run by hand, and its attempts, the id that was asked for; else ''
--          of  the open tick that this is a shard of, or '': then the run holds the job by itself
-- pending  1|job|tick|shard|shards|attempt|prev|next|trigger|request|at|holds|of|param|payload
--          holds  '1' when it was granted before: the job is held for it (but with overlap allow), and it waits
--          for the end of a pause
-- tick     1T|job|tick|shards|left|bad|worst|attempt|top|prev|next|trigger|request|granted|mode|payload      (an open
--          tick of a sharded job, in waiting; no pending run, so not in pending. Its shards' records have no payload)
--          left  shards that have not ended for good;  bad  those that did not succeed;  worst  outcome so far;
--          top  highest attempt of a shard that ended: 'tries' of the row T, for whoever gives the tick another attempt
-- row      1|R|prev|next|at|tick|shard|shards|attempt|tries|run|token|node|name|trigger|request|of|param|outcome|reason|started|late|error
--          1|T|the same: a sharded tick as a whole. Rows of its shards have no prev, and name it in 'of'
--          1|S|prev|next|at|tick|until|count|outcome|reason|note
-- event    1|upstream|prev|next|tick|until|count|outcome|at      (in the outbox, for jobs that follow)
-- cancel   1|at|author|reason
-- gate     1|epoch|generation|state|move|words     (one for each partition; none is '1|0||open||')
--          epoch  of the last promotion that came here;  generation  of whoever may make new jobs
--          state  open; sealed, for ever or until the move is undone; filling, while a move brings what is to lie
--          here; burnt, when that move was undone.  move  its id;  words  for people: where the jobs are

local GUARD = 60000000 -- redisconn.TokenGuardMicros

-- Lua prints numbers with 14 digits in Redis and 17 in miniredis: every number is spelt by this. n is a
-- number, not one spelt out already: miniredis would print nothing.
local function int(n) return string.format('%.0f', n) end

local function gate_of(s)
  if not s then return {epoch = '0', generation = '', state = 'open', move = '', words = ''} end
  local epoch, generation, state, move, words = string.match(s, '^1|(%d+)|([^|]*)|(%l+)|([^|]*)|(.*)$')
  return epoch and {epoch = epoch, generation = generation, state = state, move = move, words = words}
end

local function gate_text(g)
  return '1|' .. g.epoch .. '|' .. g.generation .. '|' .. g.state .. '|' .. g.move .. '|' .. g.words
end

-- What a partition answers whose gate is not open, 'state|move|words'; nil where it is. key is the gate's.
local function closed(key)
  local s = redis.call('GET', key)
  if not s or string.find(s, '^1|%d+|[^|]*|open|[^|]*|') then return nil end
  local g = gate_of(s)
  return g and g.state .. '|' .. g.move .. '|' .. g.words or 'foreign||'
end

local function clock()
  local us = server_micros()
  return us, math.floor(us / 1000)
end

-- The rule against every clock trouble: true when the caller's idea of our time is wrong.
local function astray(ms, now, skew)
  return math.abs(ms - tonumber(now)) > tonumber(skew)
end

-- For how long it is remembered that a job was made anew, s: nodes tell where it stood before, if Redis has lost it.
local ANEW_FOR = 60

-- How long before it is due a tick may be granted, ms. Its run starts when it is due.
local AHEAD = 500

-- Whether the caller knows another server than this one, or this one before it was restarted: what it knows of
-- its runs may be lost here. '' is a caller that does not mind.
local function elsewhere(known, here) return known ~= '' and known ~= here end

-- Whether revision a comes after b: byte by byte, for Lua's own < asks the server's locale.
local function newer(a, b)
  for i = 1, math.min(#a, #b) do
    local x, y = string.byte(a, i), string.byte(b, i)
    if x ~= y then return x > y end
  end
  return #a > #b
end

local ENTRY = '^1|(%d*)|([^|]*)|([^|]*)|(%d+)|([^|]*)|([^|]*)|(%d*)|(%d*)|([%d,]*)|([%d,]*)|([%d,]*)|([^|]*)$'

local function entry_of(s)
  if not s then return nil end
  local c, d, v, t, r, o, b, l, pause, busy, again, counts = string.match(s, ENTRY)
  if not c then return nil end
  return {cursor = c, digest = d, revision = v, token = t, rid = r, open = o, base = b, last = l, pause = pause, busy = busy,
    again = again, counts = counts}
end

local function entry_text(e)
  return '1|' .. e.cursor .. '|' .. e.digest .. '|' .. e.revision .. '|' .. e.token .. '|' .. e.rid
    .. '|' .. e.open .. '|' .. e.base .. '|' .. e.last .. '|' .. e.pause .. '|' .. e.busy .. '|' .. e.again .. '|' .. e.counts
end

-- Both ends of 'from,to' as numbers, or the bound and the attempt of 'again'; nil for ''.
local function pair(s)
  local a, b = string.match(s, '^(%d+),(%d*)$')
  return tonumber(a or nil), tonumber(b or nil) or math.huge
end

-- Whether the job is paused now. It was before it says so: its clock may have stepped back since.
local function paused(e, ms)
  if e.pause == '' then return false end
  local _, to = pair(e.pause)
  return ms < to
end

-- The cursor was set to before a pause that goes on, which holds back what has not started: now that is
-- these ticks as well.
local function stretch(e, ms)
  local since = pair(e.pause)
  if since and e.cursor ~= '' and tonumber(e.cursor) < since and paused(e, ms) then
    e.pause = e.cursor .. string.match(e.pause, ',.*$')
  end
end

-- The cursor has moved: windows that lie behind it are over, a pause when its time is as well.
local function shed(e, ms)
  local at = tonumber(e.cursor) or math.huge
  if e.pause ~= '' then
    local _, to = pair(e.pause)
    if to <= at and to <= ms then e.pause = '' end
  end
  if e.busy ~= '' then
    local _, to = pair(e.busy)
    if to <= at then e.busy = '' end
  end
  if e.again ~= '' and e.cursor ~= '' and (pair(e.again) or 0) <= at then e.again = '' end
end

-- Counts ticks and runs that ended so.
local function count(e, outcome, n)
  local before, was, after = string.match(',' .. e.counts .. ',', '^(.*,' .. outcome .. '=)(%d+)(,.*)$')
  if before then
    e.counts = string.sub(before .. int(was + n) .. after, 2, -2)
  else
    e.counts = (e.counts == '' and '' or e.counts .. ',') .. outcome .. '=' .. int(n)
  end
end

local RUN = '^1|(%d+)|(%d+)|([^|]*)|(%d+)|(%d+)|(%d+)|(%d+)|(%d+)|([^|]*)|([^|]*)|(%d+)|(%d*)|(%d*)|([^|]*)|([^|]*)|(%d+)|([sqra])|(%d+)|([^|]*)|([^|]*)|(.*)$'

local function run_of(s)
  if not s then return nil end
  local u, b, j, ti, sh, ss, a, tk, n, nm, ttl, p, nx, tr, rq, g, mode, most, of, param, pay = string.match(s, RUN)
  if not u then return nil end
  return {until_ = u, beat = b, job = j, tick = ti, shard = sh, shards = ss, attempt = a, token = tk, node = n, name = nm,
    ttl = ttl, prev = p, next = nx, trigger = tr, request = rq, granted = g, mode = mode, most = most, of = of, param = param, payload = pay}
end

local function pending_of(s)
  if not s then return nil end
  local j, ti, sh, ss, a, p, nx, tr, rq, at, holds, of, param, pay = string.match(s,
    '^1|([^|]*)|(%d+)|(%d+)|(%d+)|(%d+)|(%d*)|(%d*)|([^|]*)|([^|]*)|(%d+)|(1?)|([^|]*)|([^|]*)|(.*)$')
  if not j then return nil end
  return {job = j, tick = ti, shard = sh, shards = ss, attempt = a, prev = p, next = nx,
    trigger = tr, request = rq, at = at, holds = holds, of = of, param = param, payload = pay}
end

local function pending_text(p)
  return '1|' .. p.job .. '|' .. p.tick .. '|' .. p.shard .. '|' .. p.shards .. '|' .. p.attempt .. '|' .. p.prev
    .. '|' .. p.next .. '|' .. p.trigger .. '|' .. p.request .. '|' .. p.at .. '|' .. p.holds .. '|' .. p.of .. '|' .. p.param
    .. '|' .. p.payload
end

local function tick_of(s)
  if not s then return nil end
  local j, ti, ss, left, bad, worst, a, top, p, nx, tr, rq, g, mode, pay = string.match(s,
    '^1T|([^|]*)|(%d+)|(%d+)|(%d+)|(%d+)|([^|]*)|(%d+)|(%d+)|(%d*)|(%d*)|([^|]*)|([^|]*)|(%d+)|([sqra])|(.*)$')
  if not j then return nil end
  return {job = j, tick = ti, shards = ss, left = left, bad = bad, worst = worst, attempt = a, top = top, prev = p, next = nx,
    trigger = tr, request = rq, granted = g, mode = mode, payload = pay}
end

local function tick_text(t)
  return '1T|' .. t.job .. '|' .. t.tick .. '|' .. t.shards .. '|' .. t.left .. '|' .. t.bad .. '|' .. t.worst .. '|' .. t.attempt .. '|' .. t.top
    .. '|' .. t.prev .. '|' .. t.next .. '|' .. t.trigger .. '|' .. t.request .. '|' .. t.granted .. '|' .. t.mode .. '|' .. t.payload
end

-- Forgets a run of a job that follows another: its tick, told anew, leads to a later attempt.
local function beyond(e, tick, attempt)
  local bound, nth = 0, 1
  if e.again ~= '' then bound, nth = pair(e.again) end
  e.again = int(math.max(bound, tick + 1)) .. ',' .. int(math.max(nth, attempt + 1))
end

-- Which attempt of a tick comes next, when the cursor or another job's tick leads to it.
local function again(e, tick)
  if e.again == '' then return '1' end
  local bound, attempt = pair(e.again)
  return tick < bound and int(attempt) or '1'
end

-- Appends a row and returns how many there are then; false, with nothing done, when the key holds something
-- else than a history. Whoever writes a row does that first: it is what Redis refuses when it has no memory left, and
-- then the script ends with nothing done.
local function push(key, row)
  local n = redis.pcall('RPUSH', key, row)
  if type(n) == 'number' then return n end
  if not string.find(n.err, 'WRONGTYPE', 1, true) then error(n.err) end
  return false
end

-- Whether rows may have to leave a history, now that it has n: that is looked at with every 16th row, and up to 32 rows
-- with each whose head is too old.
local function due_to_trim(key, n, ms, keep_for)
  if n % 16 == 0 then return true end
  if n > 32 or n == 1 then return false end
  local at = string.match(redis.call('LINDEX', key, '0'), '^1|[RST]|%d*|%d*|(%d+)|') -- a number would have to be spelt first
  return at ~= nil and ms - at > keep_for + 0
end

-- Keeps a history of n rows short: rows beyond keep, or older than keep_for, leave at the head, at most 64 rows a time,
-- and e.base moves to where the remaining chain begins. A superseded row moves the base to its end, also back (a replaced
-- definition may begin before the old cursor). Any other may stand after later steps, because its run took long or
-- waited: it moves the base only if its step does not lie before it. A row without prev is no step.
-- What is kept beside a row leaves with it.
local function trim(key, kept, n, e, ms, keep, keep_for)
  local over, horizon = n - tonumber(keep), ms - tonumber(keep_for)
  local beside, fields, drop = redis.call('EXISTS', kept) == 1, {}, 0
  local base = tonumber(e.base)
  local function leaves(i, old)
    if i > over then
      local at = string.match(old, '^1|[RST]|%d*|%d*|(%d+)|')
      if i == n or tonumber(at or ms) >= horizon then return false end
    end
    local kind, prev, nxt = string.match(old, '^1|([RST])|(%d*)|(%d*)|%d+|')
    if kind == 'S' and string.find(old, '|superseded|', 1, true) or kind and prev ~= '' and base and tonumber(prev) >= base then
      e.base, base = nxt, tonumber(nxt)
    end
    if kind and kind ~= 'S' and (beside or e.cursor == '') then
      local tick, attempt, run, request = string.match(old,
        '^1|[RT]|%d*|%d*|%d+|(%d+)|%d+|%d+|(%d+)|%d+|([^|]+)|%d+|[^|]*|[^|]*|[^|]*|([^|]*)|')
      if run then
        fields[#fields + 1], fields[#fields + 2] = run, 'p:' .. run
        if prev == '' and request == '' and e.cursor == '' then beyond(e, tonumber(tick), tonumber(attempt)) end
      end
    end
    return true
  end
  local from, to = 0, math.min(63, math.max(0, over)) -- more are read only when the last of these is too old
  repeat
    local rows = redis.call('LRANGE', key, from, to)
    for i, old in ipairs(rows) do
      if not leaves(from + i, old) then rows = {} break end
      drop = from + i
    end
    from, to = to + 1, 63
  until #rows == 0 or from > 63
  if #fields > 0 then redis.call('HDEL', kept, unpack(fields)) end
  if drop > 0 then redis.call('LTRIM', key, drop, -1) end
end

-- Appends a row and keeps the history short. Returns false, with nothing done, when the key holds something else.
local function append(key, kept, row, e, ms, keep, keep_for)
  local n = push(key, row)
  if n and due_to_trim(key, n, ms, keep_for) then trim(key, kept, n, e, ms, keep, keep_for) end
  return n ~= false
end

-- Records ticks that did not run, [first, last], as one row; a row that carries on the one
-- before it, for the same reason, is merged into it. prev is first, or '' when this is no step of the
-- job's own cursor. Returns what append does.
local function pass(key, kept, e, prev, first, last, n, nxt, outcome, reason, note, ms, keep, keep_for)
  local tail = redis.pcall('LINDEX', key, -1)
  if type(tail) == 'string' then
    local p, f, t, c, o, r, nt = string.match(tail, '^1|S|(%d*)|(%d*)|%d+|(%d*)|%d*|(%d+)|([^|]*)|([^|]*)|([^|]*)$')
    if p and f == first and (p == '') == (prev == '') and o == outcome and r == reason and nt == note then
      redis.call('LSET', key, -1, '1|S|' .. p .. '|' .. nxt .. '|' .. int(ms) .. '|' .. t .. '|' .. last
        .. '|' .. int(c + n) .. '|' .. outcome .. '|' .. reason .. '|' .. note)
      count(e, outcome, n)
      return true
    end
  end
  if not append(key, kept, '1|S|' .. prev .. '|' .. nxt .. '|' .. int(ms) .. '|' .. first .. '|' .. last .. '|' .. int(n)
    .. '|' .. outcome .. '|' .. reason .. '|' .. note, e, ms, keep, keep_for) then return false end
  count(e, outcome, n)
  return true
end

-- Leaves word, for jobs that follow this one, of ticks that ended or will not run.
local function tell(outbox, upstream, prev, nxt, tick, last, n, outcome, ms)
  redis.call('ZADD', outbox, int(ms), '1|' .. upstream .. '|' .. prev .. '|' .. nxt .. '|' .. tick .. '|' .. last .. '|' .. int(n)
    .. '|' .. outcome .. '|' .. int(ms))
end

-- Whether an attempt of a tick has succeeded, of all its shards, since the cursor was set back to before it, if it was.
local function had_succeeded(history, tick)
  local rows, found = redis.pcall('LRANGE', history, 0, -1), false
  for _, row in ipairs(rows.err and {} or rows) do
    local to = string.match(row, '^1|S|%d*|(%d+)|%d+|%d+||0|superseded|rewound|')
    if to and tonumber(to) <= tonumber(tick) then
      found = false
    elseif not found and string.find(row, '|' .. tick .. '|', 1, true) then
      local kind, t, shards, request, outcome = string.match(row,
        '^1|([RT])|%d*|%d*|%d+|(%d+)|%d+|(%d+)|%d+|%d+|[^|]*|%d+|[^|]*|[^|]*|[^|]*|([^|]*)|[^|]*|[^|]*|([^|]*)|')
      found = t == tick and request == '' and outcome == 'succeeded' and (kind == 'T' or shards == '1')
    end
  end
  return found
end

-- Leaves word of how a tick ended, which a run by hand is not. What becomes of another attempt of a tick that has succeeded is nobody's
-- business: word of the success may still wait for a follower, and would come after the other.
local function tell_end(k, history, r, outcome, ms)
  if r.request ~= '' or redis.call('HEXISTS', k.followers, r.job) == 0 then return end
  if r.trigger == 'rerun' and outcome ~= 'succeeded' and had_succeeded(history, r.tick) then return end
  tell(k.outbox, r.job, r.prev, r.next, r.tick, r.tick, 1, outcome, ms)
end

-- What a cancel flag says, as the reason of the run's end.
local function reason_of(flag)
  local author, reason = string.match(flag, '^1|%d+|([^|]*)|(.*)$')
  if not author or author == '' then return 'replaced' end
  return 'cancelled by ' .. author .. (reason ~= '' and ': ' .. reason or '')
end

-- Asks the node of a run to end it.
local function raise(cancels, id, ms, author, reason)
  redis.call('HSETNX', cancels, id, '1|' .. int(ms) .. '|' .. author .. '|' .. reason)
end

local function row_text(id, r, outcome, reason, started, ended, tries, err)
  return '1|' .. (r.kind or 'R') .. '|' .. r.prev .. '|' .. r.next .. '|' .. ended .. '|' .. r.tick .. '|' .. r.shard .. '|' .. r.shards
    .. '|' .. r.attempt .. '|' .. tries .. '|' .. id .. '|' .. r.token .. '|' .. r.node .. '|' .. r.name
    .. '|' .. r.trigger .. '|' .. r.request .. '|' .. r.of .. '|' .. r.param .. '|' .. outcome .. '|' .. reason .. '|' .. started .. '||' .. err
end

-- Finds the row of a run by its id or, with asked, by the id that a person asked for; newest first.
-- Returns its index from the tail, head (all before the field 'late'), outcome, late, error.
local ROW = '^(1|[RT]|%d*|%d*|%d+|%d+|%d+|%d+|%d+|%d+|([^|]*)|%d+|[^|]*|[^|]*|[^|]*|([^|]*)|[^|]*|[^|]*|([^|]*)|[^|]*|%d*)|([^|]*)|(.*)$'
local function find_row(key, id, asked)
  local from = -1
  while true do
    local rows = redis.pcall('LRANGE', key, from - 31, from)
    if rows.err then return nil end
    for i = #rows, 1, -1 do
      if string.find(rows[i], id, 1, true) then
        local head, run, req, outcome, late, err = string.match(rows[i], ROW)
        if run == id or asked and req == id then return from - (#rows - i), head, outcome, late, err end
      end
    end
    if #rows < 32 then return nil end
    from = from - 32
  end
end

-- Frees the job from what has held it, a run or an open tick that was granted at 'since'. A run's next attempt
-- may go on holding it.
local function free(e, mode, since, freed, rerun)
  -- Where the job stays held, with overlap skip too: a tick that was due before all this is only late.
  if mode == 's' and not rerun then
    e.busy = ''
  elseif mode ~= 'a' then
    -- An attempt that follows a crash finds the window of the one before it, and goes on with it.
    e.busy = int(pair(e.busy) or tonumber(since)) .. ',' .. int(freed)
  end
end

-- Frees the job from a pending run that has held it, and was granted before: the job was busy until now.
local function let_go(e, ms)
  e.open = ''
  if e.busy ~= '' then e.busy = int(pair(e.busy)) .. ',' .. int(ms) end
end

-- Opens a tick: from now on it holds the job, and its shards are pending. p is what a run of it would be made of,
-- parts is 'N,param,param,...'.
local function open_tick(k, e, id, mode, parts, p, ms)
  local n, params = string.match(parts, '^(%d+)(.*)$')
  local waiting, pending = {}, {}
  local at = int(ms)
  p.of, p.at, p.holds, p.shards, p.shard, p.granted, p.mode = id, at, '', n, '0', at, mode
  p.left, p.bad, p.worst, p.top = n, '0', '', p.attempt
  local tick = tick_text(p)
  p.prev, p.next, p.payload = '', '', '' -- they are the tick's
  n = tonumber(n)
  local param = {}
  for one in string.gmatch(params, ',([^,]*)') do param[#param + 1] = one end
  for shard = 0, n - 1 do
    p.shard, p.param = int(shard), param[shard + 1] or ''
    local name = id .. '.' .. p.shard
    waiting[#waiting + 1], waiting[#waiting + 2] = name, pending_text(p)
    pending[#pending + 1], pending[#pending + 2] = at, name
  end
  redis.call('HSET', k.waiting, id, tick, unpack(waiting))
  redis.call('ZADD', k.pending, unpack(pending))
  redis.call('ZREM', k.pending, id)
  if mode == 'a' then
    if e.open == id then e.open = '' end
  elseif e.open ~= id then -- else the time of an attempt before it goes on
    e.open, e.busy = id, ''
  end
end

-- From the best outcome of a shard to the worst.
local WORST = {succeeded = 1, cancelled = 2, failed = 3, timed_out = 4, lost = 5, abandoned = 6}

-- Whether the record of an open tick is one that this version does not understand: then none of its shards can end.
local function strange(waiting, of)
  local text = of ~= '' and redis.call('HGET', waiting, of)
  return text and not tick_of(text)
end

-- A shard of an open tick has ended for good. The last one closes the tick: with the worst of their outcomes in one
-- row, which is the step of the cursor, and with word to those who follow.
local function part(k, history, e, r, outcome, freed, ms, keep, keep_for)
  local id = r.of
  local t = tick_of(redis.call('HGET', k.waiting, id))
  if not t then return end -- Redis has lost it
  t.left, t.top = int(t.left - 1), int(math.max(t.top, r.attempt))
  if outcome ~= 'succeeded' then t.bad = int(t.bad + 1) end
  if WORST[outcome] > (WORST[t.worst] or 0) then t.worst = outcome end
  -- guard:tick-closes-last P2 a tick of shards ends with the last of them, in one row
  if t.left ~= '0' then
    redis.call('HSET', k.waiting, id, tick_text(t))
    return
  end
  t.kind, t.shard, t.token, t.node, t.name, t.of, t.param = 'T', '0', '0', '', '', '', ''
  local reason = t.bad ~= '0' and t.bad .. ' of ' .. t.shards .. ' shards did not succeed' or ''
  append(history, k.kept, row_text(id, t, t.worst, reason, t.granted, int(ms), t.top, ''), e, ms, keep, keep_for)
  if t.payload ~= '' then redis.call('HSET', k.kept, 'p:' .. id, t.payload) end
  if e.open == id then
    e.open = ''
    free(e, t.mode, t.granted, freed, false)
  end
  tell_end(k, history, t, t.worst, ms)
  redis.call('HDEL', k.waiting, id)
  redis.call('HDEL', k.cancels, id)
end

-- Whether somebody wants a run ended, or the open tick that it is a shard of: the flag, or false.
local function wanted(cancels, id, r)
  return redis.call('HGET', cancels, id) or r.of ~= '' and redis.call('HGET', cancels, r.of)
end

-- Ends a run that was granted: its row, its lease, what is kept of it, word to those who follow. With
-- fresh, and attempts left, and nobody who wanted it ended, the next attempt is pending and holds the job
-- on. freed is when the job became free. Returns false, with nothing done, when the history is none, or the tick
-- that it is a shard of is not understood. k names the keys.
local function finish(k, history, e, id, r, row, outcome, output, fresh, freed, ms, keep, keep_for)
  if strange(k.waiting, r.of) then return false end
  if not append(history, k.kept, row, e, ms, keep, keep_for) then return false end
  count(e, outcome, 1)
  local left = fresh ~= ''
  -- guard:attempts-capped P1 a crash leads to no more attempts than the job allows
  if left and tonumber(r.attempt) >= tonumber(r.most) then left = false end
  -- A failover may have lost that this run had ended, and the next attempt is here already, or over.
  local going = left and redis.call('HEXISTS', k.runs, fresh) == 1
  local over = left and not going and find_row(history, fresh)
  local held, rerun = e.open == id, going or over or left and not wanted(k.cancels, id, r)
  if held then
    e.open = rerun and not over and fresh or ''
    free(e, r.mode, r.granted, freed, rerun and not over)
  end
  if output ~= '' then redis.call('HSET', k.kept, id, output) end
  if r.payload ~= '' then redis.call('HSET', k.kept, 'p:' .. id, r.payload) end
  if going or over then -- it tells what is to be told
  elseif rerun then
    redis.call('HSET', k.waiting, fresh, pending_text({job = r.job, tick = r.tick, shard = r.shard, shards = r.shards,
      attempt = int(r.attempt + 1), prev = '', next = '', trigger = 'rerun', request = r.request, at = int(ms),
      holds = '1', of = r.of, param = r.param, payload = r.payload}))
    redis.call('ZADD', k.pending, int(ms), fresh)
  elseif r.of ~= '' then
    part(k, history, e, r, outcome, freed, ms, keep, keep_for)
  elseif r.shards == '1' then -- not one shard's rerun
    tell_end(k, history, r, outcome, ms)
  end
  redis.call('HDEL', k.cancels, id)
  return true
end

-- Whether one of these runs is in flight or pending. A run that was handed back goes on under the id that
-- follows from its own, so whoever looks for it brings some of those as well.
local function under_way(runs, waiting, ids)
  for _, key in ipairs({runs, waiting}) do
    for _, record in ipairs(redis.call('HMGET', key, unpack(ids))) do
      if record then return true end
    end
  end
  return false
end

-- Whether one of a job's records in a hash of runs, read by run_of or pending_of, is as asked for; 'foreign'
-- when one names the job and cannot be read. It reads all runs of the partition: for what is done rarely.
local function any(key, read, job, ok)
  local found = false
  for _, text in ipairs(redis.call('HVALS', key)) do
    if string.find(text, '|' .. job .. '|', 1, true) and string.sub(text, 1, 3) ~= '1T|' then
      local r = read(text)
      if not r then found = 'foreign'
      elseif r.job == job and ok(r) then return true end
    end
  end
  return found
end
