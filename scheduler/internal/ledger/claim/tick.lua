-- Part of claim.lua: the next tick of a job.
-- needs: lib/history lib/outbox lib/rows lib/shards lib/waits claim/grant claim/holder claim/steps

local function partition_full(parts)
  return parts ~= '' and redis.call('ZCARD', k.pending) + tonumber(string.match(parts, '^%d+')) > PENDING_MAX
end

local function stale(i, e) answer(i, 'stale', '', e.cursor, e.pause .. '|' .. e.busy) return false end

-- Records ticks that will not run, with an event for followers. waiter is the run on whose account
-- they do not, '' for none.
local function record(i, e, prev, first, last, num, nxt, outcome, reason, waiter)
  local note = waiter ~= '' and waits_for(k, waiter) or ''
  if not pass(k.histories[i], k.kept, e, prev, first, last, num, nxt, outcome, reason, note, ms, keep, keep_for) then return false end
  if followed[i] then notify(k.outbox, names[i], prev, nxt, first, last, num, outcome, ms) end
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

-- Whether a job has had as many ticks as are run.
local function bounded(e, bound)
  if bound == '0' then return false end
  -- guard:max-runs P1 a job has no more ticks than its definition allows
  if tonumber(string.match(',' .. e.counts, ',ran=(%d+)') or 0) >= tonumber(bound) then return true end
  return false
end

-- Ends a job that has had as many ticks as are run: a row of no tick leads the cursor to its end.
-- What the claim passes are no ticks.
local function finish(i, e, job)
  local at = e.cursor
  if early(tonumber(at), 0) then answer(i, 'early', '', granted, '') return false end
  local row = {prev = at, next = '', at = int(ms), tick = at, last = '', count = '0', outcome = 'superseded', reason = 'max_runs', note = ''}
  if not append_range(k.histories[i], k.kept, row, e, ms, keep, keep_for) then answer(i, 'foreign', '', '', '') return false end
  step_to(e, job, '', e.last)
  answer(i, 'passed', '', '', 'max_runs')
  return true
end

-- Both return whether the entry changed.
local function claim_tick(i, e, c)
  local job, id, mode, tick, nxt, parts = c.job, c.run, c.mode, c.tick, c.next, c.parts
  if c.from == '' or cursor_differs(e.cursor, c.from) then
    local t = parts ~= '' and tick_of(redis.call('HGET', k.waiting, e.open))
    if t and t.tick == tick then opened(i, e, e.open) return false end
    return stale(i, e)
  end
  if bounded(e, c.bound) then return finish(i, e, job) end
  local list = steps(e, mode, c.from, c.passes, tick, nxt, c.trigger)
  if not list then return stale(i, e) end
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
  local attempt = reattempt(e, at)
  -- A run that ended before the cursor was set back is not granted anew under its id.
  if attempt ~= '1' and find_row(k.histories[i], id) then return stale(i, e) end
  if followed[i] and redis.call('ZCARD', k.outbox) >= OUTBOX_MAX then answer(i, 'held', '', 'full outbox', '') return false end
  if tick ~= '' and not held and partition_full(parts) then answer(i, 'held', '', 'full partition', '') return false end
  -- guard:passes-recorded P2 ticks that will not run get a row in the step that passes them
  for _, p in ipairs(list) do
    if not record(i, e, p[3], p[3], p[4], p[5], p[6], p[1], p[2], '') then answer(i, 'foreign', '', '', '') return false end
  end
  if held and not record(i, e, tick, tick, tick, 1, nxt, 'skipped', 'overlap', e.open) then answer(i, 'foreign', '', '', '') return false end
  step_to(e, job, nxt, last)
  if held or tick == '' then
    answer(i, held and 'skipped' or 'passed', '', nxt, '')
    return true
  end
  if c.bound ~= '0' then count(e, 'ran', 1) end
  local p = {job = job, tick = tick, shard = '0', shards = '1', attempt = attempt, prev = tick, next = nxt, trigger = c.trigger,
    request = '', of = '', param = '', payload = ''}
  if parts ~= '' then
    open_tick(k, e, id, mode, parts, p, ms)
    return opened(i, e, id)
  end
  local _, left = grant(e, id, c, p)
  answer(i, 'granted', e.token, left, attempt == '1' and '' or attempt)
  return true
end
