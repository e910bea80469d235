//go:build !race

package ledger

import "testing"

// failoverMutants are broken in what they do when servers take each other's place. What is too rare to be hunted has a
// story: TestReassertTheOpenTick, TestReassertASecondAttempt, TestReassertAnotherDefinition, TestReassertBehind,
// TestReassertTooLate, TestReassertAnUnknownJob, TestReassertTheHolder, TestReassertATickHandedBack, TestReassertAfterItsEnd.
var failoverMutants = []mutant{
	{"a claim goes to any server", "model", []edit{{"claim", `if elsewhere(ARGV[7], here) then`, `if false then`}}},
	{"a renewal goes to any server", "model", []edit{{"renew", `if elsewhere(ARGV[1], here) then`, `if false then`}}},
	{"an end goes to any server", "model", []edit{{"settle", `if elsewhere(ARGV[3], here) then`, `if false then`}}},
	{"any server hears what was granted", "model", []edit{{"reassert", `if elsewhere(server, here) then`, `if false then`}}},
	{"a caller without a clock is heard", "model", []edit{{"reassert", `if astray(ms, now, skew) then`, `if false then`}}},
	{"any token renews", "model", []edit{{"renew", `(ARGV[i * 3] == '' or ARGV[i * 3] == token)`, `true`}}},
	{"any token settles", "model", []edit{{"settle", `elseif token ~= '' and token ~= r.token then`, `elseif false then`}}},
	{"any token is handed back", "model", []edit{{"unclaim", `elseif token ~= '' and token ~= r.token then`, `elseif false then`}}},
	{"what has ended is restored", "P2", []edit{{"reassert", `if find_row(KEYS[FIRST + i], id) or trimmed(`, `if trimmed(`},
		{"reassert", `if over then return 'lost' end`, ``}}},
	{"what was asked for stays pending", "model", []edit{{"reassert", `redis.call('HDEL', k.waiting, id)`, ``}}},
	{"what was asked for stays in the sweep's sight", "index", []edit{{"reassert", `redis.call('ZREM', k.pending, id)`, ``}}},
	{"a restored lease is not in the sweep's sight", "index", []edit{{"reassert", `redis.call('ZADD', KEYS[3], till, id)`, ``}}},
	{"the cursor is not made up for", "P2", []edit{{"reassert", `e.cursor, e.last = nxt, tick`, `e.last = tick`}}},
	{"the cursor is not in the sweep's sight", "index", []edit{{"reassert", `if nxt ~= '' then redis.call('ZADD', KEYS[10], nxt, job) else redis.call('ZREM', KEYS[10], job) end`, ``}}},
	{"a tick that is accounted for is restored", "P2", []edit{{"reassert", `if not cursor or cursor > at then`, `if not cursor then`}}},
	{"a gap is not recorded", "P2", []edit{{"reassert", `if not pass(KEYS[FIRST + i],`, `if not string.len(KEYS[FIRST + i],`}}},
	{"a gap is not told", "model", []edit{{"reassert", `if redis.call('HEXISTS', k.followers, job) == 1 then`, `if false then`}}},
	{"the token is forgotten", "model", []edit{{"reassert", `e.token = int(math.max(e.token, r.token))`, ``}}},
	{"a restored run does not hold its job", "model", []edit{{"reassert", `    hold(e, id, r)
`, ``}}},
	{"a run beside others holds the job", "model", []edit{{"reassert", `if r.of ~= '' or r.mode == 'a' or`, `if r.of ~= '' or`}}},
	{"what was handed back is granted again", "model", []edit{{"reassert", `if ahead == 0 or ahead > 0 and not o.token then gone`, `if false then gone`}}},
	{"the step of what was handed back is lost", "P2", []edit{{"reassert", `if g[4].prev ~= '' then r.prev, r.next = g[4].prev, g[4].next end`, `r.prev, r.next = '', ''`}}},
	{"the audit is not told of a lost attempt", "model", []edit{{"reassert", `    note(e, r)
`, ``}}},
	{"an attempt follows one that goes on", "model", []edit{{"prelude", `local going = left and redis.call('HEXISTS', k.runs, fresh) == 1`, `local going = false`}}},
}

// failoverShardMutants are broken in what they do with the ticks of shards then.
var failoverShardMutants = []mutant{
	{"a lost tick is not opened", "model", []edit{{"reassert", `  open_tick(k, e, r.of, r.mode, parts, p, math.min(ms, tonumber(r.granted)))`, ``}}},
	{"a lost tick is no step", "P2", []edit{{"reassert", `p.prev, p.next = r.tick, nxt`, `p.prev, p.next = '', ''`}}},
	{"a shard takes its tick's payload", "model", []edit{{"reassert", `if r.of ~= '' then r.payload = '' end`, ``}}},
	{"a shard's first attempt is granted again", "model", []edit{{"reassert", `return before(e, id, r) == 'lost' and 'lost' or word`, `return word`}}},
}

// TestFailoverMutants: the same as TestMutants, in a world in which servers take each other's place.
func TestFailoverMutants(t *testing.T) {
	for sharded, list := range map[bool][]mutant{false: failoverMutants, true: failoverShardMutants} {
		for _, m := range list {
			t.Run(m.name, func(t *testing.T) {
				m.hunt(t, func(tr *trace) { tr.fail(sharded) })
			})
		}
	}
}
