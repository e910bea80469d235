-- Part of claim.lua: pending runs, and shards.
-- needs: codec/pending lib/cancels lib/holder lib/shards claim/tick

-- A follower's pending run that was never granted is recorded in place of a grant when it is too
-- late, when the job is paused, or when with overlap skip another run is going. Other pending runs
-- wait. Of the job's own ticks, a handed-back one may be too late.
local function skip_reason(e, p, id, mode, drop)
  -- guard:backfill-paused P2 a backfill waits while its job is paused
  if p.trigger == 'backfill' and paused(e, ms) then return 'held', 'a pause' end
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

-- A shard of an open tick: only a cancel flag holds it back. Then it is recorded as cancelled.
local function claim_shard(i, e, id, mode, p)
  if unreadable(k.waiting, p.of) then answer(i, 'foreign', '', '', '') return nil end
  -- A tick that was opened with overlap allow does not hold the job; under another policy it does
  -- from now on.
  if mode ~= 'a' and e.open ~= '' and e.open ~= p.of and not dangling(e) then answer(i, 'held', '', e.open, '') return nil end
  if mode ~= 'a' and e.open ~= p.of then e.open = '' end
  local flag = wanted(k.cancels, id, p)
  if not flag then return true end
  p.token, p.node, p.name = '0', '', ''
  local reason = reason_of(flag)
  if not append(k.histories[i], k.kept, end_row(id, p, 'cancelled', reason, granted, granted, '0', ''), e, ms, keep, keep_for) then
    answer(i, 'foreign', '', '', '')
    return nil
  end
  count(e, 'cancelled', 1)
  taken[#taken + 1] = id
  part(k, k.histories[i], e, p, 'cancelled',
    ms, ms, keep, keep_for)
  answer(i, 'passed', '', e.cursor, 'cancelled,' .. reason)
  return false
end

local function claim_pending(i, e, c)
  local id, mode, parts = c.run, c.mode, c.parts
  local text = redis.call('HGET', k.waiting, id)
  if not text then return stale(i, e) end
  local p = pending_of(text)
  if not p and is_open(i, e, id) then return false end -- opened by a definition that had shards
  if not p and tick_of(text) then return stale(i, e) end
  -- guard:foreign-record P8 a record of a newer version is left alone
  if not p then answer(i, 'foreign', '', '', '') return false end
  if p.job ~= names[i] then return stale(i, e) end
  if tonumber(p.at) > ms then answer(i, 'early', '', granted, '') return false end
  local outcome, reason = nil, nil
  if p.of ~= '' then
    local go = claim_shard(i, e, id, mode, p)
    if not go then return go == false end
  else
    outcome, reason = skip_reason(e, p, id, mode, c.from)
  end
  if outcome == 'held' then answer(i, 'held', '', reason, '') return false end
  local waiter = outcome == 'skipped' and e.open or outcome == 'missed' and id or '' -- the run itself may have waited too long
  if outcome and not record(i, e, p.prev, p.tick, p.tick, 1, p.next, outcome, reason, waiter) then answer(i, 'foreign', '', '', '') return false end
  -- guard:begun-whole P7 a tick that has begun as one run goes on as one, also under a definition
  -- that has shards
  local begun = p.holds ~= '' and tonumber(p.attempt) > 1
  if not outcome and p.of == '' and p.shards == '1' and parts ~= '' and not begun then
    if partition_full(parts) then answer(i, 'held', '', 'full partition', '') return false end
    open_tick(k, e, id, mode, parts, p, ms)
    return opened(i, e, id)
  end
  taken[#taken + 1] = id
  if outcome then
    redis.call('HDEL', k.kept, 'g:' .. id)
    if e.open == id then let_go(e, ms) end
    answer(i, 'passed', '', e.cursor, outcome .. ',' .. reason)
    return true
  end
  local run, left = grant(e, id, c, p)
  answer(i, 'granted', e.token, left, run .. carried(p.of))
  return true
end
