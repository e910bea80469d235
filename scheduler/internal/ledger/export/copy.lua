-- Begins a copy of a move into a partition, or ends all copies: earlier copies write nothing from
-- then on.
-- KEYS[1] gate
-- ARGV[1] id of the move  ARGV[2] number of the copy
-- Returns 'done' (also when repeated), 'stale' (a later copy has begun), or the gate of a partition
-- that this move does not fill.
-- needs: codec/gate
local text = redis.call('GET', KEYS[1])
local g = gate_of(text)
if not text or not g or g.state ~= 'filling' or g.move ~= ARGV[1] then return text or 'none' end
local from, copy = string.match(g.words, '^(.*), copy (%d+)$')
if not from then return text end
if tonumber(copy) > tonumber(ARGV[2]) then return 'stale' end
g.words = from .. ', copy ' .. ARGV[2]
redis.call('SET', KEYS[1], gate_text(g))
return 'done'
