-- The windows of an entry: the job's pause, the time of its last run, and the ticks that a rewind
-- repeats.
-- needs: lib/base

-- Both ends of 'from,to' as numbers, or the bound and the attempt of 'reattempt'; nil for ''.
local function pair(s)
  local a, b = string.match(s, '^(%d+),(%d*)$')
  return tonumber(a or nil), tonumber(b or nil) or math.huge
end

-- Whether the job is paused now. A pause that begins later counts: Redis' clock may have stepped
-- back.
local function paused(e, ms)
  if e.pause == '' then return false end
  local _, to = pair(e.pause)
  return ms < to
end

-- Extends a pause that goes on to the cursor, after the cursor was set to before the pause.
local function stretch(e, ms)
  local since = pair(e.pause)
  if since and e.cursor ~= '' and tonumber(e.cursor) < since and paused(e, ms) then
    e.pause = e.cursor .. string.match(e.pause, ',.*$')
  end
end

-- Drops windows that end before the cursor. A pause also has to be over by Redis' clock.
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
  if e.reattempt ~= '' and e.cursor ~= '' and (pair(e.reattempt) or 0) <= at then e.reattempt = '' end
end

-- Notes that the row of a follower's run leaves the history: a repeated event of its tick leads to
-- a later attempt.
local function beyond(e, tick, attempt)
  local bound, nth = 0, 1
  if e.reattempt ~= '' then bound, nth = pair(e.reattempt) end
  e.reattempt = int(math.max(bound, tick + 1)) .. ',' .. int(math.max(nth, attempt + 1))
end

-- The number of the attempt that a tick begins with.
local function reattempt(e, tick)
  if e.reattempt == '' then return '1' end
  local bound, attempt = pair(e.reattempt)
  return tick < bound and int(attempt) or '1'
end
