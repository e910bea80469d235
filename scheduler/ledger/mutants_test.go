package ledger

import (
	"slices"
	"strings"
	"testing"
)

// mutants are the shipped scripts with one guard taken out or one line broken. Each must break a
// promise that an outsider can see in the replies or in the books: caught is its number. A few
// break none and are only wrong: those the model sees, or the look at the sweep's indexes.
var mutants = []struct {
	name   string
	caught string
	edits  []edit
}{
	{"cursor is not compared", "P1", []edit{{"claim", `if e.cursor ~= from or from == '' then`, `if from == '' then`}}},
	{"cursor does not move on", "P1", []edit{{"claim", `e.cursor, e.last = nxt, tick`, `e.last = tick`}}},
	{"a held job is granted its next tick", "P1", []edit{{"claim", `or e.open ~= '' and not pass(`, `or false and not pass(`},
		{"claim", `if e.open ~= '' then`, `if false then`}}},
	{"a held job is granted a pending run", "P1", []edit{{"claim", `if e.open ~= '' and e.open ~= id then`, `if false then`}}},
	{"a tick is granted before it is due", "early", []edit{{"claim", `if at > ms then`, `if false then`}}},
	{"any definition is granted", "P7", []edit{{"claim", `if e.digest ~= digest then`, `if false then`}}},
	{"a claim asked again is not known", "P6", []edit{{"claim", `if e.open ~= id then return false end`, `if true then return false end`}}},
	{"another node gets the same grant", "P1", []edit{{"claim", ` or r.node ~= node then`, ` then`}}},
	{"a claimed pending run stays pending", "P1", []edit{{"claim", `redis.call('HDEL', KEYS[6], id)`, `redis.call('HLEN', KEYS[6])`}}},
	{"the sweep's set of due jobs stays behind", "index", []edit{{"claim", `if #due > 0 then`, `if false then`}}},
	{"missed ticks are not recorded", "P2", []edit{{"claim", `if count ~= '0' and not pass(KEYS[6 + i], e, from, last, tonumber(count), tick, 'missed', 'late', ms, keep, keep_for)`, `if false`}}},
	{"late ticks are skipped like overlapping ones", "model", []edit{{"claim", `not r or tonumber(r.granted) <= at`, `true`}}},
	{"a skipped tick is not recorded", "P2", []edit{{"claim", `or e.open ~= '' and not pass(KEYS[6 + i], e, tick, tick, 1, nxt, 'skipped', 'overlap', ms, keep, keep_for) then`, `then`}}},
	{"ranges are merged over a hole", "P2", []edit{{"prelude", `if p and n == first then`, `if p then`}}},
	{"trimming leaves the base", "P2", []edit{{"prelude", `then e.base = nxt end`, `then end`}}},
	{"a late row moves the base", "P2", []edit{{"prelude", `tonumber(prev) >= tonumber(e.base)`, `true`}}},
	{"the clock is not compared", "clock", []edit{{"prelude", `return math.abs(ms - tonumber(now)) > tonumber(skew)`, `return false`}}},
	{"the token follows the clock alone", "P3", []edit{{"prelude", `token = math.max(t + 1, now)`, `token = now`}}},
	{"no guard for a new server", "P3", []edit{{"prelude", `token = math.max(t + 1000000, now + guard)`, `token = now`}}},
	{"the token is a mere counter", "model", []edit{{"prelude", `token = math.max(t + 1, now)`, `token = t + 1`}, {"prelude", `token = math.max(t + 1000000, now + guard)`, `token = t + 1`}}},
	{"digits of the token get lost", "P3", []edit{{"prelude", `return string.format('%.0f', token)`, `return string.format('%.0f', math.floor(token / 100) * 100)`}}},
	{"a settled run stays in flight", "P2", []edit{{"settle", `redis.call('HDEL', KEYS[2], unpack(gone))`, ``}}},
	{"a run is settled twice in a batch", "P2", []edit{{"settle", ` or gone[id] then`, ` then`}}},
	{"settle writes no row", "P2", []edit{{"settle", `not append(KEYS[3 + i], row_text(id, r, outcome, reason, started, ended, tries, err), e, ms, keep, keep_for)`, `false`}}},
	{"the last report wins", "P2", []edit{{"settle", `if was == outcome then return 'settled' end`, `if was then return 'settled' end`}}},
	{"a late report is not kept", "model", []edit{{"settle", `if noted == '' then`, `if false then`}}},
	{"the beat does not guard a lease", "P4", []edit{{"reap", `r.beat ~= beat or `, ``}}},
	{"a live lease is reaped", "P4", []edit{{"reap", ` or tonumber(r.until_) >= ms then`, ` then`}}},
	{"a reaped lease stays in the sweep's sight", "index", []edit{{"reap", `redis.call('ZREM', KEYS[3], id)`, ``}}},
	{"a reaped run writes no row", "P2", []edit{{"reap", `append(KEYS[3 + i],`, `string.len(KEYS[3 + i],`}}},
	{"renewal revives an ended run", "P4", []edit{{"renew", `held[i] and 'foreign' or 'gone'`, `'renewed'`}}},
	{"renewal does not move the lease's end", "P2", []edit{{"renew", `local till = int(ms + ARGV[i * 2])`, `local till = string.match(held[i], '^1|(%d+)|')`}}},
	{"renewal does not count", "P4", []edit{{"renew", `int(beat + 1)`, `beat`}}},
	{"a run handed back keeps its id", "P1", []edit{{"unclaim", `local job, id, fresh = ARGV[i * 3 - 2], ARGV[i * 3 - 1], ARGV[i * 3]`, `local job, id, fresh = ARGV[i * 3 - 2], ARGV[i * 3 - 1], ARGV[i * 3 - 1]`}}},
	{"a run handed back is still in flight", "P1", []edit{{"unclaim", `redis.call('HDEL', KEYS[2], id)`, ``}}},
	{"a run handed back lets go of its job", "model", []edit{{"unclaim", `e.open = fresh`, `e.open = ''`}}},
	{"a request is not known by its row", "P1", []edit{{"trigger", `or find_row(KEYS[5], id) then`, `then`}}},
	{"a request handed back is not known", "P1", []edit{{"trigger", `(holder and holder.request == id) or `, ``}}},
	{"a definition begins before what ran", "P2", []edit{{"define", ` or tonumber(cursor) <= (tonumber(e.last) or 0)`, ``}}},
	{"a definition is replaced from any cursor", "model", []edit{{"define", ` or e.cursor ~= stood`, ``}}},
	{"a definition passes over a tick that has come due", "model", []edit{{"define", ` or (upcoming ~= '' and tonumber(upcoming) <= ms)`, ``}}},
	{"a replaced definition leaves a hole", "P2", []edit{{"define", `append(KEYS[3 + i],`, `string.len(KEYS[3 + i],`}}},
}

// mutantOps bounds a mutant's trace; most are caught within the first hundred operations.
const mutantOps = 4000

// TestMutants: the trace's checks see each broken script. The unbroken one passes TestTrace.
func TestMutants(t *testing.T) {
	for i, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			useScripts(t, slices.Concat(steered, m.edits)...)
			tr := newTrace(uint64(i)+7, realRig(t, traceConfig))
			seen := map[string]int{} // what was wrong -> at which operation first
			caught := func() bool {
				for _, what := range tr.all() {
					if kind, _, _ := strings.Cut(what, ":"); seen[kind] == 0 {
						seen[kind] = tr.step
					}
				}
				if seen["model"] > 0 {
					tr.model = nil // from here on it is not of this world
				}
				return seen[m.caught] > 0 && (seen["model"] > 0 || m.caught == "index")
			}
			tr.run(t, mutantOps, caught)
			if seen["error"] > 0 {
				t.Fatalf("the changed script fails, which proves nothing: %v", tr.all())
			}
			if !caught() {
				t.Fatalf("want it caught by %s; caught, at which operation: %v", m.caught, seen)
			}
			t.Logf("caught by, at operation: %v", seen)
		})
	}
}
