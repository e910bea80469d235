-- Ends a batch of runs: releases the lease, records the outcome, once. The first terminal
-- outcome wins; asked again, a settle gives the answer it gave before.
-- KEYS[1] jobs  KEYS[2] runs  KEYS[3] leases  KEYS[4] pending  KEYS[5] waiting  KEYS[6] kept
-- KEYS[7] cancels  KEYS[8] outbox  KEYS[9] followers  KEYS[9+i] history of item i's job
-- ARGV[1] rows to keep  ARGV[2] age to keep, ms  ARGV[3] id of the server that the caller knows, '' for any
-- then for each item one of two forms. A run that succeeded at once and left nothing has 6: '', job, run, token ('' for any),
--   started ms, ended ms; any other has 11: outcome, job, run, token, reason, started ms, ended ms, tries, error, output,
--   and the run id of the next attempt, if this end asks for one and there are attempts left, or ''
-- Returns {'server', id} and does nothing when the caller knows another server, else one text, a word for each item, parted by commas:
--   settled  recorded now, or already recorded by this same report
--   lost     somebody else ended the run before, and the report is kept beside that outcome; or was granted it since
--   unknown  nobody knows this run (any more)
--   foreign  a record that this version does not understand
-- needs: lib/base lib/history codec/entry
local keep, keep_for = ARGV[1], ARGV[2]
local us, ms = clock()
if ARGV[3] ~= '' then
  local here = server_id()
  if elsewhere(ARGV[3], here) then return {'server', here} end
end
local HEAD, FIRST = 3, 9
local runs, leases, kept, cancels, outbox, followers = KEYS[2], KEYS[3], KEYS[6], KEYS[7], KEYS[8], KEYS[9]
local n = #KEYS - FIRST
local names, ids, at = {}, {}, {} -- of each item: its job, its run, and where it stands in ARGV
local a = HEAD + 1
for i = 1, n do
  names[i], ids[i], at[i] = ARGV[a + 1], ARGV[a + 2], a
  a = a + (ARGV[a] == '' and 6 or 11)
end
local raw, held = redis.call('HMGET', KEYS[1], unpack(names)), redis.call('HMGET', runs, unpack(ids))
local beside = redis.call('EXISTS', followers, cancels) > 0
local followed = beside and redis.call('HMGET', followers, unpack(names)) or {}

-- Whether a report is of another grant than the one that a token was given to.
local function other(token, its)
  -- guard:settle-mine P2 a run is ended by whoever holds its token
  if token ~= '' and token ~= its then return true end
  return false
end

-- Stores what has changed, and then takes away the runs that have ended.
local function store(saved, gone)
  redis.call('HSET', KEYS[1], unpack(saved))
  -- guard:first-outcome P2 a run that has ended cannot end another way
  redis.call('HDEL', runs, unpack(gone))
  redis.call('ZREM', leases, unpack(gone))
end

-- The fast path: runs that succeeded, of ticks without shards. It takes records apart by the places of
-- what is known of them, and reads once what the runs of a batch share. Whatever it does not know is left
-- to the other path, which does the same, and whose code is not even made while nothing is left.
local find, sub, match, byte, concat = string.find, string.sub, string.match, string.byte, table.concat
local now = int(ms)
local out, left, seen, twice = {}, {}, {}, false
local saved, gone, told, size = {}, {}, {}, 0
local tails, mids, more = {}, {}, {} -- what was read, by its text: a run from its tick on, base and last, counts

-- What runs share from the tick on, apart from when they ended: what stands in the row, and in the entry and the outbox.
local function tail_of(text)
  local tick, attempt, owner, token, prev, nxt, trigger, since, mode =
    match(text, '^|(%d+)|0|1|(%d+)|((%d+)|[^|]*|[^|]*)|%d+|(%d*)|(%d*)|([^|]*)||(%d+)|([sqra])|%d+|||$')
  if not tick then return false end
  return {
    token = token, mode = mode, link = '1|R|' .. prev .. '|' .. nxt .. '|', tick = '|' .. tick .. '|0|1|' .. attempt .. '|1|',
    owner = '|' .. owner .. '|' .. trigger .. '||||succeeded||', busy = (mode == 's' or mode == 'a') and '||||' or '||' .. since .. ',' .. now .. '||',
    word = '|' .. prev .. '|' .. nxt .. '|' .. tick .. '|' .. tick .. '|1|succeeded|' .. now,
  }
end

-- Reads a run from its job's end on; nil when it is no usual one.
local function usual(r, job)
  local _, at = find(r, job, 1, true)
  if not at or sub(r, 1, 2) ~= '1|' then return nil end
  local text = sub(r, at + 1)
  local tail = tails[text]
  if tail == nil then
    tail = tail_of(text)
    tails[text] = tail
  end
  return tail
end

-- Counts, with one more success; nil when they are none.
local function one_more(counts)
  if find(counts, '|', 1, true) then return nil end
  local digits, rest = match(counts, '^succeeded=(%d+)(.*)$')
  if digits then return 'succeeded=' .. int(digits + 1) .. rest end
  local e = {counts = counts}
  count(e, 'succeeded', 1)
  return e.counts
end

-- The entry of a job that a run with this tail holds no longer, with one more success; nil when it is no usual one.
local function freed(s, id, tail)
  local head, mid, counts
  if tail.mode == 'a' then -- such a run does not hold its job
    head, mid, counts = match(s, '^(1|%d*|[^|]*|[^|]*|%d+|[^|]*|)(|%d*|%d*)||||(.*)$')
    if not head then return nil end
  else
    local from, to = find(s, id, #s > 50 and 50 or 1, true) -- more than that stands before it
    local a, b = find(s, '||||', to or 1, true) -- neither paused, nor busy before, nor set back
    if not from or not a or a < to or sub(s, 1, 2) ~= '1|' or byte(s, from - 1) ~= 124 then return nil end
    head, mid, counts = sub(s, 1, from - 1), sub(s, to + 1, a - 1), sub(s, b + 1)
    if mids[mid] == nil then mids[mid] = find(mid, '^|%d*|%d*$') ~= nil end
    if not mids[mid] then return nil end
  end
  local sum = more[counts]
  if sum == nil then
    sum = one_more(counts) or false
    more[counts] = sum
  end
  return sum and head .. mid .. tail.busy .. sum
end

for i = 1, n do
  local job, id, a, s, r = names[i], ids[i], at[i], raw[i], held[i]
  local done
  if seen[job] then
    twice = true
  elseif s and r and ARGV[a] == '' then
    local tail = usual(r, job)
    s = tail and not other(ARGV[a + 3], tail.token) and freed(s, id, tail)
    if s then
      local history, ended = KEYS[FIRST + i], ARGV[a + 5]
      local rows = push(history, tail.link .. ended .. tail.tick .. id .. tail.owner .. ARGV[a + 4] .. '||')
      done = rows and 'settled' or 'foreign'
      if rows then
        if (rows % 16 == 0 or rows <= 32) and due_to_trim(history, rows, ms, keep_for) then
          local e = entry_of(s)
          trim(history, kept, rows, e, ms, keep, keep_for)
          s = entry_text(e)
        end
        saved[size * 2 + 1], saved[size * 2 + 2] = job, s
        size = size + 1
        gone[size] = id
        if followed[i] then told[#told + 1], told[#told + 2] = now, '1|' .. job .. tail.word end
      end
    end
  end
  if not done then left[#left + 1] = i end
  out[i], seen[job] = done, true
end
if #told > 0 then redis.call('ZADD', outbox, unpack(told)) end
if #gone > 0 then
  store(saved, gone)
  if beside then redis.call('HDEL', cancels, unpack(gone)) end
end
if #left == 0 then return concat(out, ',') end

-- The other path knows everything.
-- needs: lib/rows lib/finish codec/run
if twice then raw, held = redis.call('HMGET', KEYS[1], unpack(names)), redis.call('HMGET', runs, unpack(ids)) end
local k = {runs = runs, pending = KEYS[4], waiting = KEYS[5], kept = kept, cancels = cancels, outbox = outbox, followers = followers}
local entries, ended_now = {}, {}
saved, gone = {}, {}

-- The report that stands at a place, as what an item of 11 has after its job and run.
local function report(a)
  if ARGV[a] ~= '' then return ARGV[a + 3], ARGV[a], unpack(ARGV, a + 4, a + 10) end
  return ARGV[a + 3], 'succeeded', '', ARGV[a + 4], ARGV[a + 5], '1', '', '', ''
end

local function late(i, id, outcome, ended)
  local at, row = find_row(KEYS[FIRST + i], id)
  if not at then return 'unknown' end -- also when it was handed back and ran under another id
  -- guard:settle-repeated P2 a report that is repeated gets the answer it got before
  if row.outcome == outcome then return 'settled' end
  if row.late == '' then
    row.late = outcome .. ' ' .. ended
    redis.call('LSET', KEYS[FIRST + i], at, row_text(row))
  end
  return 'lost'
end

for _, i in ipairs(left) do
  local job, id = names[i], ids[i]
  local token, outcome, reason, started, ended, tries, err, output, fresh = report(at[i])
  local r = run_of(held[i])
  local e = entries[job] or entry_of(raw[i])
  entries[job] = e
  if not held[i] or ended_now[id] then out[i] = late(i, id, outcome, ended)
  elseif not r or not e then out[i] = 'foreign'
  elseif other(token, r.token) then out[i] = 'lost'
  elseif not finish(k, KEYS[FIRST + i], e, id, r, end_row(id, r, outcome, reason, started, ended, tries, err), outcome, output,
    fresh, ms, ms, keep, keep_for) then
    out[i] = 'foreign'
  else
    ended_now[id] = true
    gone[#gone + 1] = id
    out[i] = 'settled'
  end
end
if #gone > 0 then
  local jobs = {}
  for job in pairs(entries) do jobs[#jobs + 1] = job end
  table.sort(jobs)
  for _, job in ipairs(jobs) do saved[#saved + 1], saved[#saved + 2] = job, entry_text(entries[job]) end
  store(saved, gone)
end
return concat(out, ',')
