-- Part of claim.lua: whether a claim's passes fit.
-- needs: claim/holder

-- Reads a claim's passes. Returns 'held' when ticks that wait behind a run in flight are passed as
-- missed ('early' if they are not due), and nil when the passes are no step from the cursor to the
-- tick, or do not fit the job's windows. Ticks in the pause, and no other ticks, are passed as
-- paused. Of the busy window's ticks only the latest runs; the rest are passed as overlapping, or
-- as too late for start_within.
local function steps(e, mode, from, passes, tick, nxt, trigger)
  local list, at, pf, pt, bf, bt, going, overlap = {}, from, nil, nil, nil, nil, nil, false
  local waits = mode == 'q' or mode == 'r'
  if e.pause ~= '' then pf, pt = pair(e.pause) end
  if e.busy ~= '' and waits then
    bf, bt = pair(e.busy)
    -- guard:busy-clipped P2 a job was busy until now at most, whatever clock stored the window
    if bt > ms then bt = ms + 1 end
  end
  if e.open ~= '' and waits then
    going = bf or since(e)
  end
  for outcome, reason, first, last, num, after in string.gmatch(passes, '([^,;]+),([^,;]+),(%d+),(%d+),(%d+),(%d*);') do
    local f, l = tonumber(first), tonumber(last)
    if first ~= at or l < f or (after ~= '' and tonumber(after) <= l) then return nil end
    if outcome == 'paused' then
      if not pf or f < pf or l >= pt then return nil end
    elseif pf and l >= pf and f < pt then return nil end
    -- Ticks behind a run in flight wait for the run: no node missed them.
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
  -- guard:tick-follows-passes P2 no tick vanishes between the passed ticks and the tick that runs
  if tick ~= at or (nxt ~= '' and tonumber(nxt) <= t) then return nil end
  -- guard:pause-holds P2 a tick of a pause is recorded as paused, also for a caller that has not
  -- read the pause
  if pf and t >= pf and t < pt then return nil end
  local later = tonumber(nxt) or math.huge
  local latest = bf and t >= bf and t < bt
  if overlap and not latest then return nil end
  if latest and (trigger == 'catch_up' or later < bt and not (pf and later >= pf and later < pt)) then return nil end
  return list
end
