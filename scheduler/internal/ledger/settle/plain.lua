-- Part of settle.lua: the fast path.
-- needs: lib/history codec/entry

-- The fast path: runs that succeeded, of ticks without shards. Records are read by patterns, and
-- texts that the batch's runs share are read once. The slow path handles all other items; its code
-- is not loaded while there are none.
local find, sub, match, byte, concat = string.find, string.sub, string.match, string.byte, table.concat
local now = int(ms)
local out, left, seen, twice = {}, {}, {}, false
local saved, ended_ids, events, wrote, size = {}, {}, {}, {}, 0
local tails, mids, more = {}, {}, {} -- by text: a run from its tick on, base and last, counts

-- The texts that runs share from the tick on, apart from the time of their end: in the row, the
-- entry and the outbox.
local function tail_of(text)
  local tick, attempt, owner, token, prev, nxt, trigger, since, mode =
    match(text, '^|(%d+)|0|1|(%d+)|((%d+)|[^|]*|[^|]*)|%d+|(%d*)|(%d*)|([^|]*)||(%d+)|([sqra])|%d+|||$')
  if not tick then return false end
  return {
    token = token, mode = mode, link = '1|R|' .. prev .. '|' .. nxt .. '|', tick = '|' .. tick .. '|0|1|' .. attempt .. '|1|',
    owner = '|' .. owner .. '|' .. trigger .. '||||succeeded||', busy = (mode == 's' or mode == 'a') and '||||' or '||' .. since .. ',' .. now .. '||',
    event = '|' .. prev .. '|' .. nxt .. '|' .. tick .. '|' .. tick .. '|1|succeeded|' .. now,
  }
end

-- Reads a run from its job's end on; nil when the slow path has to.
local function plain(r, job)
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

-- Counts, with one more success; nil when the text has no counts.
local function one_more(counts)
  if find(counts, '|', 1, true) then return nil end
  local digits, rest = match(counts, '^succeeded=(%d+)(.*)$')
  if digits then return 'succeeded=' .. int(digits + 1) .. rest end
  local e = {counts = counts}
  count(e, 'succeeded', 1)
  return e.counts
end

-- The entry of a job after a run with this tail, with one more success; nil when the slow path has
-- to write it.
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
    local tail = plain(r, job)
    s = tail and not other_grant(ARGV[a + TOKEN], tail.token) and freed(s, id, tail)
    if s then
      local history, ended = k.histories[i], ARGV[a + ENDED]
      local rows = push(history, tail.link .. ended .. tail.tick .. id .. tail.owner .. ARGV[a + STARTED] .. '||')
      done = rows and 'settled' or 'foreign'
      if rows then
        if (rows % 16 == 0 or rows <= 32) and due_to_trim(history, rows, ms, keep_for) then
          local e = entry_of(s)
          trim(history, k.kept, rows, e, ms, keep, keep_for)
          s = entry_text(e)
        end
        saved[size * 2 + 1], saved[size * 2 + 2] = job, s
        size = size + 1
        ended_ids[size], wrote[size] = id, job
        if followed[i] then events[#events + 1], events[#events + 2] = now, '1|' .. job .. tail.event end
      end
    end
  end
  if not done then left[#left + 1] = i end
  out[i], seen[job] = done, true
end
if #events > 0 then redis.call('ZADD', k.outbox, unpack(events)) end
if #ended_ids > 0 then
  note_recent(ms, concat(wrote, ','))
  store(saved, ended_ids)
  if watched then redis.call('HDEL', k.cancels, unpack(ended_ids)) end
end
if #left == 0 then return concat(out, ',') end
