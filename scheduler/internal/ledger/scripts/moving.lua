-- Stands behind the prelude before the scripts that read and write a control record's field 'move':
-- move     1|id|role|state|peer|ms     peer is the other side's address, ms when the state was reached
local function moving_of(s)
  local id, role, state, peer = string.match(s or '', '^1|([^|]+)|(%l+)|(%l+)|([^|]*)|%d+$')
  return id and {id = id, role = role, state = state, peer = peer}
end

local function moving_text(id, role, state, peer, ms)
  return '1|' .. id .. '|' .. role .. '|' .. state .. '|' .. peer .. '|' .. int(ms)
end
