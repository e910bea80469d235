-- Runs that have lost their records.
-- needs: lib/epoch

local runs_lost = {} -- by id: this call has found the run lost

-- Whether a run's record is gone though the run has a lease. Then another epoch begins, once: the
-- lease goes too, so that a run that no node reports holds its job for that epoch only.
local function run_lost(id)
  -- guard:run-lost P1 a job whose run has lost its record is granted nothing before nodes have reported their runs
  if not runs_lost[id] and redis.call('ZSCORE', k.leases, id) then
    redis.call('ZREM', k.leases, id)
    end_epoch()
    runs_lost[id] = true
  end
  return runs_lost[id]
end
