//go:build !race

package ledger

import (
	"slices"
	"testing"
)

// promoteMutants are the scripts of a promotion without one of their checks.
var promoteMutants = []edit{
	{"begin", `if astray(ms, ARGV[6], ARGV[7]) then`, `if false then`},
	{"begin", `== 0 then return {'unknown'} end`, `== 9 then return {'unknown'} end`},
	{"begin", `if state and shut[state] then`, `if false then`},
	{"begin", `sealing = 'sealed', `, ``}, {"begin", ` sealed = 'sealed',`, ``}, {"begin", `moved = 'sealed', `, ``},
	{"begin", `filling = 'filling', `, ``}, {"begin", `opening = 'filling', `, ``}, {"begin", `, burnt = 'burnt'`, ``},
	{"begin", `if same == rest and`, `if under and`},
	{"begin", `if same == rest and`, `if false and`},
	{"begin", ` and tonumber(under) >= least then`, ` then`},
	{"begin", `if last ~= ARGV[5] then return {'moved', last} end`, ``},
	{"begin", `if half then return {'half', half} end`, ``},
	{"begin", `math.max(tonumber(last) or 0, least) + 1`, `(tonumber(last) or 0) + 1`},
	{"begin", `if pattern == '' then`, `if true then`},
	{"begin", `if pattern == '' then`, `if false then`},
	{"promote", `if shut then`, `if false then`},
	{"promote", `if tonumber(gate.epoch) > epoch then return 'outdated' end`, ``},
	{"promote", `if tonumber(gate.epoch) > epoch then`, `if gate.epoch > ARGV[1] then`},
	{"promote", `if ARGV[3] == '1' then`, `if true then`},
	{"promote", `if ARGV[3] == '1' then`, `if false then`},
	{"promote", `gate.epoch = int(epoch)`, ``},
	{"promoted", `if redis.call('HGET', KEYS[1], 'promoting') ~= ARGV[1] then return 0 end`, ``},
	{"promoted", `redis.call('HDEL', KEYS[1], 'promoting')`, ``},
	{"follow", `if ARGV[4] ~= '' and`, `if false and`},
	{"follow", `ARGV[4] ~= gate_of(redis.call('GET', KEYS[#KEYS])).epoch`, `ARGV[4] < gate_of(redis.call('GET', KEYS[#KEYS])).epoch`},
	{"follow", `ARGV[4] ~= gate_of(redis.call('GET', KEYS[#KEYS])).epoch`, `ARGV[4] > gate_of(redis.call('GET', KEYS[#KEYS])).epoch`},
	{"beside", `if shut then`, `if false then`},
	{"beside", `if ARGV[5] == '1' and not room()`, `if not room()`},
	{"beside", `if ARGV[5] == '1' and not room()`, `if false and not room()`},
	{"beside", `seen < ms - age then`, `seen <= ms - age then`},
	{"beside", `seen < ms - age then`, `false then`},
	{"beside", `  redis.call('HDEL', former, field)
end`, `end`},
	{"beside", `if fields[generation] or n < most then`, `if n < most then`},
	{"beside", `if fields[generation] or n < most then`, `if fields[generation] or n <= most then`},
	{"beside", `if fields[generation] or n < most then`, `if true then`},
	{"beside", `seen < latest[oldest] or`, `seen > latest[oldest] or`},
	{"beside", `and newer(oldest, of) then`, `and newer(of, oldest) then`},
	{"beside", `math.max(latest[of], seen)`, `seen`},
	{"beside", `if latest[oldest] > ms - yields then return false end`, ``},
	{"beside", `latest[oldest] > ms - yields`, `latest[oldest] >= ms - yields`},
	{"beside", `for _, field in ipairs(fields[oldest]) do drop(field) end`, ``},
	{"beside", `if stored and not seen then`, `if false then`},
	{"beside", `held ~= digest and held ~= was then`, `held ~= digest and was == '' then`},
	{"beside", `if stored and held == digest and newer(rev, revision) then revision = rev end`, ``},
	{"beside", `if stored and held == digest and newer(rev, revision)`, `if stored and newer(rev, revision)`},
	{"beside", `'1|' .. int(ms) .. '|' .. revision`, `'1|' .. (seen or int(ms)) .. '|' .. revision`},
	{"beside", `if stored and held ~= digest then replace(field, held, digest) end`, ``},
	{"beside", ` and one ~= digest and`, ` and`},
	{"beside", ` and #list < 8 then`, ` then`},
}

// TestPromoteMutants takes each check out of the scripts, and the tale must notice.
func TestPromoteMutants(t *testing.T) {
	for _, m := range promoteMutants {
		t.Run(m.script+" "+m.old+" "+m.new, func(t *testing.T) {
			useScripts(t, append(slices.Clone(steered), m)...)
			s := newPromoteTale(t, embeddedRig(t, promoteConfig))
			if s.tell(); len(s.wrong) == 0 {
				t.Error("not caught")
			} else {
				t.Log(s.wrong[0])
			}
		})
	}
}
