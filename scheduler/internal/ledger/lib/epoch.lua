-- Whether the Redis of a script still has the records that the caller relies on.
-- needs: lib/base

-- The id of a partition's epoch: the server's and the partition's incarnation, parted by '/'. A
-- partition that has lost its gate or its incarnation has none. Second, the gate.
local function epoch_at(server)
  local gate = redis.call('GET', k.gate)
  return server .. '/' .. (gate and redis.call('GET', k.incarnation) or ''), gate
end

-- Whether the caller is of another epoch: its runs may be lost here. '' is any.
local function elsewhere(known, here)
  -- guard:epoch-compare P1 an emptied Redis, or one that lost records, is another epoch
  if known ~= '' and known ~= here then return true end
  return false
end

-- Ends the partition's incarnation: another epoch begins, in which nodes report their runs and
-- cursors. A script that has written may go on when Redis is out of memory, so a caller checks
-- before it writes.
local function end_epoch() redis.call('DEL', k.incarnation) end
