-- Takes a partition's gate from one state to another, for one step of a move. A gate remembers the last move that had
-- it, also when it is open again: what comes late from an older move, or from one that was undone, changes nothing.
-- KEYS[1] gate  KEYS[2] jobs
-- Returns 'done' (also when repeated), 'full' (to be filled, and jobs lie there), 'foreign', or the gate that does not fit.
-- needs: lib/newer codec/gate
-- ARGV, written by gen from verbs.go:
--   id         id of the move
--   state      state to be
--   own        states it may come from, of this very move, each followed by a comma
--   others     the same when an older move had the gate last, or none did; 'none,' is a gate that is not
--              there
--   words      for people: where the jobs are
--   epoch      epoch to be, '' for the one it has
--   generation generation to be, with the epoch
--   copy       the copy that must have been ended by whoever opens, '' for any: an opening that comes late
--              finds a later one here
local id, state, own, others, words, epoch, generation, copy =
  ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7], ARGV[8]
-- end of ARGV
local text = redis.call('GET', KEYS[1])
local g = gate_of(text)
if not g then return 'foreign' end
local mine = g.move == id
if mine and g.state == state then return 'done' end
-- guard:gate-state P7 a step of a move is taken only from the state that it may follow
if not string.find(mine and own or others, (text and g.state or 'none') .. ',', 1, true) then return text or 'none' end
-- guard:move-epoch P7 what comes late from an older move changes nothing
if not mine and not newer(id, g.move) then return text end
local tail = copy ~= '' and ', copy ' .. copy or ''
if tail ~= '' and string.sub(g.words, -#tail) ~= tail then return text or 'none' end
if state == 'filling' and redis.call('EXISTS', KEYS[2]) == 1 then return 'full' end
g.state, g.move, g.words = state, id, words
if epoch ~= '' then g.epoch, g.generation = epoch, generation end
redis.call('SET', KEYS[1], gate_text(g))
return 'done'
