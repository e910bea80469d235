-- Deletes keys of a partition without current records: with the records of an undone move, of an
-- earlier copy, or from before the namespace moved away.
-- KEYS[1] gate  KEYS[2...] keys of the partition
-- ARGV[1] state that the gate must have  ARGV[2] id of the move that must have had it last
-- ARGV[3] number of the copy that must have begun last, '' for any
-- Returns 'done', or the gate that is another.
-- needs: codec/gate
local text = redis.call('GET', KEYS[1])
local g = gate_of(text)
-- guard:wipe-gate P7 only a partition that holds nothing that counts is emptied
if not text or not g or g.state ~= ARGV[1] or g.move ~= ARGV[2] then return text or 'none' end
-- guard:wipe-copy P7 an earlier copy deletes no records of a later one
if ARGV[3] ~= '' and string.match(g.words, ', copy (%d+)$') ~= ARGV[3] then return text end
for i = 2, #KEYS do redis.call('DEL', KEYS[i]) end
return 'done'
