-- Cancel flags of runs.
-- needs: lib/base codec/cancel

-- The reason of a cancelled run's end, from its cancel flag.
local function reason_of(flag)
  local c = cancel_of(flag)
  if not c or c.author == '' then return 'replaced' end
  return 'cancelled by ' .. c.author .. (c.reason ~= '' and ': ' .. c.reason or '')
end

-- Sets a run's cancel flag, which the run's node reads.
local function raise(cancels, id, ms, author, reason)
  redis.call('HSETNX', cancels, id, cancel_text({at = int(ms), author = author, reason = reason}))
end

-- Returns the cancel flag of a run or of the open tick that the run is a shard of, or false.
local function wanted(cancels, id, r)
  return redis.call('HGET', cancels, id) or r.of ~= '' and redis.call('HGET', cancels, r.of)
end
