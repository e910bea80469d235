//go:build !race

package ledger

import "testing"

// gateMutants are broken in what they do with gates, generations, and definitions whose schedule stays. That a gate which cannot
// be read is closed has a story: TestAClosedGateChangesNothing.
var gateMutants = []mutant{
	{"a closed partition grants", "P7", []edit{{"claim", `local shut = closed(KEYS[#KEYS])`, `local shut = nil`}}},
	{"a closed partition takes definitions", "P7", []edit{{"define", `local shut = closed(KEYS[#KEYS])`, `local shut = nil`}}},
	{"a closed partition takes runs by hand", "P7", []edit{{"trigger", `local shut = closed(KEYS[#KEYS])`, `local shut = nil`}}},
	{"a closed partition cancels what waits", "model", []edit{{"cancel", `local shut = closed(KEYS[10])`, `local shut = nil`}}},
	{"a closed partition repeats", "P7", []edit{{"rerun", `local shut = closed(KEYS[#KEYS])`, `local shut = nil`}}},
	{"a closed partition sets cursors back", "P7", []edit{{"rewind", `local shut = closed(KEYS[#KEYS])`, `local shut = nil`}}},
	{"a closed partition forgets jobs", "P7", []edit{{"remove", `local shut = closed(KEYS[#KEYS])`, `local shut = nil`}}},
	{"a closed partition lets jobs rest", "P7", []edit{{"pause", `local shut = closed(KEYS[#KEYS])`, `local shut = nil`}}},
	{"a closed partition takes followers", "P7", []edit{{"follow", `local shut = closed(KEYS[#KEYS])`, `local shut = nil`}}},
	{"a closed partition hears of ends", "P7", []edit{{"relay", `local shut = closed(KEYS[#KEYS])`, `local shut = nil`}}},
	{"a closed partition does not know its grants", "P6", []edit{{"claim", `if shut and not (e and repeated(i, e, id, kind, ARGV[a + 5])) then`, `if shut then`}}},
	{"a partition that is filled grants", "P7", []edit{{"prelude", `'^1|%d+|[^|]*|open|[^|]*|'`, `'^1|%d+|[^|]*|[of][pi]%l+|[^|]*|'`}}},
	{"a partition does not say who has closed it", "model", []edit{{"prelude", `return g and g.state .. '|' .. g.move`, `return g and g.state .. '|'`}}},
	{"any generation makes new jobs", "P7", []edit{{"define", ` or epoch == '' and not text and generation ~= gate.generation then`, ` then`}}},
	{"a generation on standby is not told what is there", "model", []edit{{"define", `epoch == '' and not text and`, `epoch == '' and`}}},
	{"a promotion makes no new jobs", "model", []edit{{"define", `epoch == '' and not text and`, `not text and`}}},
	{"any promotion switches", "P7", []edit{{"define", `if epoch ~= '' and epoch ~= gate.epoch or epoch`, `if epoch`}}},
	{"an older promotion switches", "P7", []edit{{"define", `epoch ~= gate.epoch or`, `tonumber(epoch) > tonumber(gate.epoch) or`}}},
	{"a promotion that has not come here switches", "P7", []edit{{"define", `epoch ~= gate.epoch or`, `tonumber(epoch) < tonumber(gate.epoch) or`}}},
	{"a schedule that stays replaces any definition", "model", []edit{{"define", `elseif e.digest ~= was or same == '' and (`, `elseif same == '' and (e.digest ~= was or `}}},
	{"a schedule that stays is not kept", "model", []edit{{"define", `if same == '1' then stood,`, `if false then stood,`}}},
	{"a schedule that stays begins anew", "P2", []edit{{"define", `num = e.cursor, e.cursor, '', '0' end`, `num = e.cursor, cursor, '', '0' end`}}},
	{"what was replaced is forgotten", "model", []edit{{"define", `redis.call('HSET', former, job, table.concat(list, ','))`, ``}}},
	{"what was replaced is never forgotten", "model", []edit{{"define", ` and #list < 8`, ``}}},
	{"what came back is among the replaced", "model", []edit{{"define", ` and one ~= digest`, ``}}},
	{"what was replaced last is named last", "model", []edit{{"define", `local list = {was}`, `local list = {}`},
		{"define", `  redis.call('HSET', former, job,`, `  list[#list + 1] = was
  redis.call('HSET', former, job,`}}},
	{"any promotion tells who follows", "P7", []edit{{"follow", `if ARGV[4] ~= '' and ARGV[4] ~= gate_of(`, `if false and ARGV[4] ~= gate_of(`}}},
	{"an older promotion tells who follows", "P7", []edit{{"follow", `ARGV[4] ~= gate_of(redis.call('GET', KEYS[#KEYS])).epoch then`, `tonumber(ARGV[4]) > tonumber(gate_of(redis.call('GET', KEYS[#KEYS])).epoch) then`}}},
	{"a promotion that has not come here tells who follows", "P7", []edit{{"follow", `ARGV[4] ~= gate_of(redis.call('GET', KEYS[#KEYS])).epoch then`, `tonumber(ARGV[4]) < tonumber(gate_of(redis.call('GET', KEYS[#KEYS])).epoch) then`}}},
	{"an older promotion comes to a partition", "model", []edit{{"promote", `if tonumber(gate.epoch) > epoch then return 'outdated' end`, ``}}},
	{"a promotion comes to a closed partition", "model", []edit{{"promote", `if shut then`, `if false then`}}},
	{"a promotion of some jobs changes who makes new ones", "model", []edit{{"promote", `if ARGV[3] == '1' then`, `if true then`}}},
	{"a promotion of all jobs does not change who makes new ones", "model", []edit{{"promote", `if ARGV[3] == '1' then`, `if false then`}}},
	{"what was replaced outlives its job", "model", []edit{{"remove", `KEYS[9], KEYS[12]})`, `KEYS[9]})`}}},
}

// TestGateMutants: the same as TestMutants, for what closes a partition and who may define.
func TestGateMutants(t *testing.T) {
	for _, m := range gateMutants {
		t.Run(m.name, func(t *testing.T) { m.hunt(t, func(*trace) {}) })
	}
}
