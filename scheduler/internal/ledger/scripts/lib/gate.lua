-- Whether a move has closed a partition.
-- needs: codec/gate

-- What a partition answers whose gate is not open, 'state|move|words'; nil where it is. key is the gate's.
local function closed(key)
  local s = redis.call('GET', key)
  if not s or string.find(s, GATE_OPEN) then return nil end
  local g = gate_of(s)
  return g and g.state .. '|' .. g.move .. '|' .. g.words or 'foreign||'
end
