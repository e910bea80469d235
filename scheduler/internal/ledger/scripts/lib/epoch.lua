-- Whether the Redis that a script runs in still has what the caller knows of.
-- needs: lib/base

-- The id of a partition's epoch: the server's and the partition's incarnation, parted by '/'. A partition that has lost its gate or
-- its incarnation has none. Second, the gate.
local function epoch_at(server)
  local gate = redis.call('GET', k.gate)
  return server .. '/' .. (gate and redis.call('GET', k.incarnation) or ''), gate
end

-- Whether the caller knows another epoch: its runs may be lost here. '' is any.
local function elsewhere(known, here)
  -- guard:epoch-compare P1 a Redis that was emptied or lost records is taken for another one, until nodes have reported their runs
  if known ~= '' and known ~= here then return true end
  return false
end

-- Ends the partition's incarnation: another epoch begins, in which nodes report what they know. A script that has written anything may go on
-- without memory, so this comes after a look.
local function end_epoch() redis.call('DEL', k.incarnation) end
