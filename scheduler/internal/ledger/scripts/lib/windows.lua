-- The windows of an entry: a job's pause, what its last run was busy for, and ticks that were accounted for once.
-- needs: lib/base

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
