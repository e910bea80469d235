-- Runs that have lost their records.

-- Ends the partition's incarnation. A script that has written anything may go on without memory, so this comes after a look.
local function end_epoch(id)
  redis.call('ZREM', k.leases, id)
  return redis.call('DEL', k.incarnation) == 1
end

-- Whether a run's record is gone though the run has a lease. Then the partition has lost records, and another epoch begins, once.
local function run_lost(id)
  -- guard:run-lost P1 a job whose run has lost its record is granted nothing before nodes have reported their runs
  if redis.call('ZSCORE', k.leases, id) then return end_epoch(id) end
  return false
end
