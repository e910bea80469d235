-- Whether a move has closed a partition.
-- needs: codec/gate

-- The answer of a partition with this gate, 'state|move|words'; nil for an open one.
local function closed_by(s)
  if not s or string.find(s, GATE_OPEN) then return nil end
  local g = gate_of(s)
  return g and g.state .. '|' .. g.move .. '|' .. g.words or 'foreign||'
end

local function closed(key) return closed_by(redis.call('GET', key)) end
