-- What holds a job lets it go.
-- needs: lib/base lib/windows

-- Frees the job from what has held it, a run or an open tick that was granted at 'since'. A run's next attempt
-- may go on holding it.
local function free(e, mode, since, freed, rerun)
  -- Where the job stays held, with overlap skip too: a tick that was due before all this is only late.
  if mode == 's' and not rerun then
    e.busy = ''
  elseif mode ~= 'a' then
    -- An attempt that follows a crash finds the window of the one before it, and goes on with it.
    e.busy = int(pair(e.busy) or tonumber(since)) .. ',' .. int(freed)
  end
end

-- Frees the job from a pending run that has held it, and was granted before: the job was busy until now.
local function let_go(e, ms)
  e.open = ''
  if e.busy ~= '' then e.busy = int(pair(e.busy)) .. ',' .. int(ms) end
end
