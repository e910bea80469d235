-- Deletes keys of a partition that holds nothing that counts: what a move that was undone has brought, or what lay here
-- before the namespace moved away.
-- KEYS[1] gate  KEYS[2...] keys of the partition
-- ARGV[1] state that the gate must have  ARGV[2] id of the move that must have had it last
-- Returns 'done', or the gate that is another.
-- needs: codec/gate
local text = redis.call('GET', KEYS[1])
local g = gate_of(text)
if not text or not g or g.state ~= ARGV[1] or g.move ~= ARGV[2] then return text or 'none' end
for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end
return 'done'
