-- Brings a promotion to one partition: from then on scripts of an earlier one change nothing there, and, if it is of
-- all jobs, new jobs are made by nodes of its generation.
-- KEYS[1] the partition's gate
-- ARGV[1] epoch  ARGV[2] generation  ARGV[3] '1' if all jobs are promoted
-- Returns 'closed|state|move|words', or one word: raised, there (it came here before), outdated (a later one has)
-- needs: lib/base lib/gate
local shut = closed(KEYS[1])
if shut then return 'closed|' .. shut end
local gate, epoch = gate_of(redis.call('GET', KEYS[1])), tonumber(ARGV[1])
if tonumber(gate.epoch) > epoch then return 'outdated' end
if tonumber(gate.epoch) == epoch then return 'there' end
gate.epoch = int(epoch)
if ARGV[3] == '1' then gate.generation = ARGV[2] end
redis.call('SET', KEYS[1], gate_text(gate))
return 'raised'
