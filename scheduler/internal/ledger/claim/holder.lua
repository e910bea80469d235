-- Part of claim.lua: what holds a job.
-- needs: codec/run codec/tick lib/windows lib/lost lib/cancels

-- Whether the record of the run that holds the job is missing: no script deletes it, so a person or
-- Redis did. Nothing can end that run.
local function dangling(e)
  if redis.call('HEXISTS', k.runs, e.open) == 0 and run_lost(e.open) then return false end -- its node may still know it
  return redis.call('HEXISTS', k.runs, e.open) == 0 and redis.call('HEXISTS', k.waiting, e.open) == 0
end

-- When what holds the job was granted, or opened; nil when that is pending.
local function since(e)
  local r = run_of(redis.call('HGET', k.runs, e.open)) or tick_of(redis.call('HGET', k.waiting, e.open))
  return r and tonumber(r.granted)
end

-- A tick overlaps the run that holds the job if it came due while that run was going. A tick that
-- was due before the run was granted is merely late: it waits for the run and is not skipped.
local function overlaps(e, at)
  local from = since(e) or pair(e.busy) -- of a pending holder, when it was granted first
  return not from or from <= at
end

-- With overlap replace, a tick that comes due while a run is going has it ended.
local function replace(e, mode, at)
  local going = mode == 'r' and (redis.call('HEXISTS', k.runs, e.open) == 1 or tick_of(redis.call('HGET', k.waiting, e.open)))
  if going and overlaps(e, at) then raise(k.cancels, e.open, ms, '', '') end
end
