-- Sets a job's cursor back, by compare-and-set on its digest and cursor. Ticks that were accounted
-- for will be claimed once more, with a higher attempt than any recorded one.
-- keys: jobs due kept recent runs waiting history gate
-- Arguments: rewindArgs in operate.go.
-- Returns {'clock', redis ms}, {'closed', 'state|move|words'}, or one word: rewound, stale (another
-- definition or cursor is stored), held (a run is in flight, or an attempt of a tick is pending),
-- trimmed (the history does not reach back so far), forward (the cursor lies before the wanted
-- one), unknown, foreign.
-- needs: lib/args lib/gate lib/windows lib/history lib/waiting codec/entry codec/run codec/pending
local job, from, to = args.job, args.from or '', args.to
local us, ms = clock()
if clock_off(ms, args.now, args.skew) then return {'clock', int(ms)} end
local shut = closed(k.gate)
-- guard:rewind-gate P7 a partition that a move has closed sets no cursor back
if shut then return {'closed', shut} end
local text = redis.call('HGET', k.jobs, job)
if not text then return {'unknown'} end
local e = entry_of(text)
if not e then return {'foreign'} end
if e.digest ~= args.digest or e.cursor ~= from then return {'stale'} end
-- A run in flight or pending may still need the number of a next attempt.
if e.open ~= '' or any(k.runs, run_of, job, function() return true end)
  or any(k.waiting, pending_of, job, function(p) return p.request == '' end) then return {'held'} end
local rows = redis.pcall('LRANGE', k.history, 0, -1)
if rows.err then return {'foreign'} end
-- A chain that began without a schedule, as of a job that was a follower, reaches back to its first
-- schedule.
local base = e.base ~= '' and e.base
for _, row in ipairs(rows) do
  local r = range_of(row)
  if r and r.prev == '' and r.next ~= '' and r.outcome == 'superseded' then base = base or r.next end
end
if not base then return {'trimmed'} end
-- A clock that was taken back may have begun the history in the future, and trimmed the rows
-- before: then nothing is missing within the time that a history is kept.
local misdated = tonumber(base) > ms and tonumber(to) >= ms - tonumber(args.reach)
if tonumber(to) < tonumber(base) and not misdated then return {'trimmed'} end
if e.cursor ~= '' and tonumber(to) >= tonumber(e.cursor) then return {'forward'} end
local attempt = 0
for _, row in ipairs(rows) do
  local kind, tick, _, _, nth, top = string.match(row, ROW_ENDED)
  if tick and tonumber(tick) >= tonumber(to) then attempt = math.max(attempt, kind == 'T' and top or nth) end
end
if not append_range(k.history, k.kept, {prev = from, next = to, at = int(ms), tick = to, last = '', count = '0', outcome = 'superseded',
  reason = 'rewound', note = ''}, e, ms, args.keep, args.keep_for) then
  return {'foreign'}
end
local bound = tonumber(from) or (tonumber(e.last) or ms) + 1
if e.reattempt ~= '' then
  local b, nth = pair(e.reattempt)
  bound, attempt = math.max(bound, b), math.max(attempt, nth - 1)
end
shed(e, ms) -- a pause may have ended by itself
-- guard:rewind-attempt P1 a tick that is granted again is a later attempt
e.reattempt = int(bound) .. ',' .. int(attempt + 1)
e.cursor, e.last, e.busy = to, int(tonumber(to) - 1), ''
stretch(e, ms)
redis.call('HSET', k.jobs, job, entry_text(e))
redis.call('ZADD', k.due, to, job)
return {'rewound'}
