-- Brings a promotion to one partition: from then on scripts of an earlier one change nothing there,
-- and, if it is of all jobs, new jobs are made by nodes of its generation.
-- keys: gate
-- Arguments: promoteArgs in promote.go.
-- Returns 'closed|state|move|words', or one word: raised, there (it came here before), outdated (a
-- later one has)
-- needs: lib/args lib/base lib/gate
local shut = closed(k.gate)
-- guard:promote-gate P7 a partition that a move has closed is not promoted
if shut then return 'closed|' .. shut end
local gate, epoch = gate_of(redis.call('GET', k.gate)), args.epoch
if tonumber(gate.epoch) > epoch then return 'outdated' end
if tonumber(gate.epoch) == epoch then return 'there' end
gate.epoch = int(epoch)
if args.all then gate.generation = args.generation end
redis.call('SET', k.gate, gate_text(gate))
return 'raised'
