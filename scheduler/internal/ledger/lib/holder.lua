-- Releasing a job from the run or the open tick that holds it.
-- needs: lib/base lib/windows

-- Releases the job from a run or an open tick that was granted at 'since'. With rerun, the next
-- attempt holds the job on.
local function free(e, mode, since, freed, rerun)
  -- With a rerun the window stays, with overlap skip too: a tick that was due before is only late.
  if mode == 's' and not rerun then
    e.busy = ''
  elseif mode ~= 'a' then
    -- An attempt that follows a crash finds the window of the one before it, and goes on with it.
    e.busy = int(pair(e.busy) or tonumber(since)) .. ',' .. int(freed)
  end
end

-- Releases the job from a pending run that was granted before. The job was busy until now.
local function let_go(e, ms)
  e.open = ''
  if e.busy ~= '' then e.busy = int(pair(e.busy)) .. ',' .. int(ms) end
end
