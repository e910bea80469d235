-- Whether a move has closed a partition.
-- needs: codec/gate

-- The answer of a partition whose gate is closed, 'state|move|words'; nil for an open gate.
local function closed(key)
  local s = redis.call('GET', key)
  if not s or string.find(s, GATE_OPEN) then return nil end
  local g = gate_of(s)
  return g and g.state .. '|' .. g.move .. '|' .. g.words or 'foreign||'
end
