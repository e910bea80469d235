-- Looking for runs in flight and pending runs.

-- Whether a run with one of these ids is in flight or pending. A run that was handed back goes on
-- under the next id, so callers pass some of its later ids as well.
local function under_way(runs, waiting, ids)
  for _, key in ipairs({runs, waiting}) do
    for _, record in ipairs(redis.call('HMGET', key, unpack(ids))) do
      if record then return true end
    end
  end
  return false
end

-- Whether ok holds for one of a job's records in a hash of runs, read by run_of or pending_of;
-- 'foreign' when a record names the job and cannot be read. Reads all runs of the partition: for
-- rare operations.
local function any(key, read, job, ok)
  local found = false
  for _, text in ipairs(redis.call('HVALS', key)) do
    if string.find(text, '|' .. job .. '|', 1, true) and string.sub(text, 1, 3) ~= '1T|' then
      local r = read(text)
      if not r then found = 'foreign'
      elseif r.job == job and ok(r) then return true end
    end
  end
  return found
end
