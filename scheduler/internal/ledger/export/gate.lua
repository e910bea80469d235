-- Changes the state of a partition's gate, for one step of a move. A gate keeps the id of its last
-- move, also when open again: late calls of an older move, or of an undone one, change nothing.
-- keys: gate jobs
-- Arguments: GateStep in movegate.go.
-- Returns 'done' (also when repeated), 'full' (the partition to fill has jobs), 'foreign', or the
-- gate that does not fit.
-- needs: lib/args lib/newer codec/gate
local text = redis.call('GET', k.gate)
local g = gate_of(text)
if not g then return 'foreign' end
local mine = g.move == args.id
if mine and g.state == args.state then return 'done' end
local states = args.older
if mine then states = args.own end
-- guard:gate-state P7 a step of a move is taken only from the state that it may follow
if not among(states, text and g.state or 'none') then return text or 'none' end
-- guard:move-epoch P7 a late call of an older move changes nothing
if not mine and not newer(args.id, g.move) then return text end
local tail = args.copy and ', copy ' .. args.copy -- a late opening finds a later copy here
if tail and string.sub(g.words, -#tail) ~= tail then return text or 'none' end
if args.state == 'filling' and redis.call('EXISTS', k.jobs) == 1 then return 'full' end
g.state, g.move, g.words = args.state, args.id, args.words
if args.turn then g.epoch, g.generation = args.epoch, args.generation end
redis.call('SET', k.gate, gate_text(g))
return 'done'
