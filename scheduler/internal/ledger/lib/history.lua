-- Writing a job's history, and keeping it short.
-- needs: lib/base lib/windows codec/row

-- How many rows of ticks that did not run a history keeps, for each run that it may keep.
local APART_MOST = 4

-- How many lines 'recent' keeps at least.
local RECENT_MOST = 1000

-- Counts n ticks or runs with an outcome.
local function count(e, outcome, n)
  local before, was, after = string.match(',' .. e.counts .. ',', '^(.*,' .. outcome .. '=)(%d+)(,.*)$')
  if before then
    e.counts = string.sub(before .. int(was + n) .. after, 2, -2)
  else
    e.counts = (e.counts == '' and '' or e.counts .. ',') .. outcome .. '=' .. int(n)
  end
end

-- Two numbers among the counts are no counts: 'apart', how many rows of the history are of ticks
-- that did not run, and 'won', when the last run succeeded whose row has left, ms.
local function noted(e, word) return tonumber(string.match(',' .. e.counts, ',' .. word .. '=(%d+)') or 0) end

local function set_noted(e, word, n)
  local was = noted(e, word)
  if n ~= was then count(e, word, n - was) end
end

-- Notes the last success among runs whose rows leave.
local function note_success(e, rows)
  for i = #rows, 1, -1 do
    local kind, _, shards, _, outcome = string.match(rows[i], ROW_OUTCOME)
    if outcome == 'succeeded' and (kind == 'T' or shards == '1') then
      -- guard:success-noted P2 the time of a job's last success is kept as long as the job
      set_noted(e, 'won', math.max(noted(e, 'won'), tonumber(string.match(rows[i], ROW_AT))))
      return
    end
  end
end

-- Appends a row and returns the number of rows; false when the key holds no list. A script appends
-- its row before its other writes: Redis without memory refuses the row, and the script ends with
-- nothing done.
local function push(key, row)
  local n = redis.pcall('RPUSH', key, row)
  if type(n) == 'number' then return n end
  if not string.find(n.err, 'WRONGTYPE', 1, true) then error(n.err) end
  return false
end

-- Notes that rows of some jobs were written, 'a,b'. The list is cut with every 200th line.
local function note_recent(ms, jobs)
  if redis.call('RPUSH', k.recent, int(ms) .. '|' .. jobs) >= RECENT_MOST + 200 then redis.call('LTRIM', k.recent, -RECENT_MOST, -1) end
end

-- The job whose history lies at a key.
local function job_at(key) return string.match(key, '^[^}]*}:history:(.*)$') end

-- Whether a history of n rows is to be trimmed: with every 16th row, and up to 32 rows when the
-- oldest is too old.
local function due_to_trim(key, n, ms, keep_for)
  if n % 16 == 0 then return true end
  if n > 32 or n == 1 then return false end
  local at = string.match(redis.call('LINDEX', key, '0'), ROW_AT) -- text: a number would have to be formatted first
  return at ~= nil and ms - at > keep_for + 0
end

-- Keeps a history of n rows short: runs beyond keep leave at the head, as do rows older than
-- keep_for, at most 64 rows a time, and e.base moves to the beginning of the remaining chain. Rows
-- of ticks that did not run have a bound of their own. A superseded row moves the base to the row's
-- end, also back: a replaced definition may begin before the old cursor. Any other row may stand
-- after later steps, because its run took long or waited: it moves the base only if its step does
-- not lie before the base. A row without prev is no step. Output, payload and checkpoint of a row
-- leave with the row.
local function trim(key, kept, n, e, ms, keep, keep_for)
  local over, apart, horizon = n - tonumber(keep), math.min(noted(e, 'apart'), n), ms - tonumber(keep_for)
  -- guard:runs-kept P2 rows of ticks that did not run push no run out of the history
  over = over - apart
  local kept_any, fields, drop, won = redis.call('EXISTS', kept) == 1, {}, 0, {}
  local base = tonumber(e.base)
  local function leaves(i, old)
    if over <= 0 and apart <= keep * APART_MOST then
      local at = string.match(old, ROW_AT)
      if i == n or tonumber(at or ms) >= horizon then return false end
    end
    local kind, prev, nxt = string.match(old, ROW_STEP)
    if kind == 'S' and apart > 0 then apart = apart - 1 else over = over - 1 end
    if string.find(old, '|succeeded|', 1, true) then won[#won + 1] = old end
    if kind == 'S' and string.find(old, '|superseded|', 1, true) or kind and prev ~= '' and base and tonumber(prev) >= base then
      e.base, base = nxt, tonumber(nxt)
    end
    if kind and kind ~= 'S' and (kept_any or e.cursor == '') then
      local tick, attempt, run, request = string.match(old, ROW_RUN)
      if run then
        local at = #fields
        fields[at + 1], fields[at + 2], fields[at + 3], fields[at + 4] = run, 'p:' .. run, 's:' .. run, 'g:' .. run
        if prev == '' and request == '' and e.cursor == '' then beyond(e, tonumber(tick), tonumber(attempt)) end
      end
    end
    return true
  end
  local from, to = 0, math.min(63, math.max(0, over)) -- more rows are read only when the last of these is too old
  repeat
    local rows = redis.call('LRANGE', key, from, to)
    for i, old in ipairs(rows) do
      if not leaves(from + i, old) then rows = {} break end
      drop = from + i
    end
    from, to = to + 1, 63
  until #rows == 0 or from > 63
  if #fields > 0 then redis.call('HDEL', kept, unpack(fields)) end
  if drop == 0 then return end
  redis.call('LTRIM', key, drop, -1)
  set_noted(e, 'apart', apart)
  note_success(e, won)
end

-- Appends a row and trims the history. Returns false, and does nothing, when the key holds no list.
local function append(key, kept, row, e, ms, keep, keep_for)
  local n = push(key, row)
  if not n then return false end
  note_recent(ms, job_at(key))
  if due_to_trim(key, n, ms, keep_for) then trim(key, kept, n, e, ms, keep, keep_for) end
  return true
end

-- Appends a row of ticks that did not run. Returns what append does.
local function append_range(key, kept, r, e, ms, keep, keep_for)
  set_noted(e, 'apart', noted(e, 'apart') + 1) -- before the history is trimmed
  if append(key, kept, range_text(r), e, ms, keep, keep_for) then return true end
  set_noted(e, 'apart', noted(e, 'apart') - 1)
  return false
end

-- Records ticks that did not run, [first, last], as one row; a row that continues the previous row,
-- for the same reason, is merged into it. prev is first, or '' when the row is no step of the job's
-- own cursor. Returns what append does.
local function pass(key, kept, e, prev, first, last, n, nxt, outcome, reason, note, ms, keep, keep_for)
  local tail = redis.pcall('LINDEX', key, -1)
  local r = type(tail) == 'string' and range_of(tail)
  if r and r.next == first and (r.prev == '') == (prev == '') and r.outcome == outcome and r.reason == reason and r.note == note then
    r.next, r.at, r.last, r.count = nxt, int(ms), last, int(r.count + n)
    redis.call('LSET', key, -1, range_text(r))
    note_recent(ms, job_at(key))
  elseif not append_range(key, kept, {prev = prev, next = nxt, at = int(ms), tick = first, last = last, count = int(n),
    outcome = outcome, reason = reason, note = note}, e, ms, keep, keep_for) then
    return false
  end
  count(e, outcome, n)
  return true
end
