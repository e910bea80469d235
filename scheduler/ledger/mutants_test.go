//go:build !race

package ledger

import (
	"slices"
	"strings"
	"testing"
)

type mutant struct {
	name   string
	caught string
	edits  []edit
}

// mutants are the shipped scripts with one guard taken out or one line broken. Each must break a
// promise that an outsider can see in the replies or in the books: caught is its number. A few
// break none and are only wrong: those the model sees, or the look at the sweep's indexes.
var mutants = []mutant{
	{"cursor is not compared", "P1", []edit{{"claim", `if e.cursor ~= from or from == '' then`, `if from == '' then`}}},
	{"cursor does not move on", "P1", []edit{{"claim", `e.cursor, e.last = nxt, last`, `e.last = last`}}},
	{"a held job is granted its next tick", "P1", []edit{{"claim", `local held = tick ~= '' and mode ~= 'a' and e.open ~= ''`, `local held = false`}}},
	{"a held job is granted a pending run", "P1", []edit{{"claim", `if mode == 'a' or e.open == '' or e.open == id or dangling(e) then return nil end`, `if true then return nil end`}}},
	{"a tick is granted before it is due", "early", []edit{{"claim", `if at > ms then`, `if false then`}}},
	{"any definition is granted", "P7", []edit{{"claim", `if e.digest ~= digest then`, `if false then`}}},
	{"a claim asked again is not known", "P6", []edit{{"claim", `if e.open ~= id and mode ~= 'a' and kind ~= 's' then return false end`, `if true then return false end`}}},
	{"a claim asked again is not known beside others", "P6", []edit{{"claim", `if e.open ~= id and mode ~= 'a' and`, `if e.open ~= id and`}}},
	{"another node gets the same grant", "P1", []edit{{"claim", ` or r.node ~= node or`, ` or`}}},
	{"a claimed pending run stays pending", "P1", []edit{{"claim", `redis.call('HDEL', KEYS[6], unpack(taken))`, `redis.call('HLEN', KEYS[6])`}}},
	{"the sweep's set of due jobs stays behind", "index", []edit{{"claim", `if #due > 0 then`, `if false then`}}},
	{"an ended schedule stays due", "index", []edit{{"claim", `if #over > 0 then`, `if false then`}}},
	{"passed ticks are not recorded", "P2", []edit{{"claim", `if not record(i, e, p[3], p[3], p[4], p[5], p[6], p[1], p[2]) then`, `if false then`}}},
	{"late ticks are skipped like overlapping ones", "model", []edit{{"claim", `return not from or from <= at`, `return true`}}},
	{"a skipped tick is not recorded", "P2", []edit{{"claim", `if held and not record(i, e, tick, tick, tick, 1, nxt, 'skipped', 'overlap') then`, `if false then`}}},
	{"ranges are merged over a hole", "P2", []edit{{"prelude", `if p and f == first and`, `if p and`}}},
	{"trimming leaves the base", "P2", []edit{{"prelude", `then e.base = nxt end`, `then end`}}},
	{"a late row moves the base", "P2", []edit{{"prelude", `tonumber(prev) >= tonumber(e.base)`, `true`}}},
	{"the clock is not compared", "clock", []edit{{"prelude", `return math.abs(ms - tonumber(now)) > tonumber(skew)`, `return false`}}},
	{"the token follows the clock alone", "P3", []edit{{"prelude", `token = math.max(t + 1, now)`, `token = now`}}},
	{"no guard for a new server", "P3", []edit{{"prelude", `token = math.max(t + 1000000, now + guard)`, `token = now`}}},
	{"the token is a mere counter", "model", []edit{{"prelude", `token = math.max(t + 1, now)`, `token = t + 1`}, {"prelude", `token = math.max(t + 1000000, now + guard)`, `token = t + 1`}}},
	{"digits of the token get lost", "P3", []edit{{"prelude", `return string.format('%.0f', token)`, `return string.format('%.0f', math.floor(token / 100) * 100)`}}},
	{"a settled run stays in flight", "P2", []edit{{"settle", `redis.call('HDEL', KEYS[2], unpack(gone))`, ``}}},
	{"a run is settled twice in a batch", "P2", []edit{{"settle", ` or gone[id] then`, ` then`}}},
	{"an ended run writes no row", "P2", []edit{{"prelude", `if not append(history, k.kept, row, e, ms, keep, keep_for) then return false end`, ``}}},
	{"the last report wins", "P2", []edit{{"settle", `if was == outcome then return 'settled' end`, `if was then return 'settled' end`}}},
	{"a late report is not kept", "model", []edit{{"settle", `if noted == '' then`, `if false then`}}},
	{"the beat does not guard a lease", "P4", []edit{{"reap", `r.beat ~= beat or `, ``}}},
	{"a live lease is reaped", "P4", []edit{{"reap", ` or tonumber(r.until_) >= ms then`, ` then`}}},
	{"a reaped lease stays in the sweep's sight", "index", []edit{{"reap", `redis.call('ZREM', KEYS[3], id)`, ``}}},
	{"a reaped run failed", "P2", []edit{{"reap", `'abandoned', 'lease lapsed'`, `'failed', 'lease lapsed'`}}},
	{"renewal revives an ended run", "P4", []edit{{"renew", `held[i] and not beat and 'foreign' or 'gone'`, `'renewed'`}}},
	{"renewal does not move the lease's end", "P2", []edit{{"renew", `local till = int(ms + ARGV[i * 3 + 1])`, `local till = string.match(held[i], '^1|(%d+)|')`}}},
	{"renewal does not count", "P4", []edit{{"renew", `int(beat + 1)`, `beat`}}},
	{"a run handed back keeps its id", "P1", []edit{{"unclaim", `ARGV[a + 2], ARGV[a + 3]`, `ARGV[a + 2], ARGV[a + 1]`}}},
	{"a run handed back is still in flight", "P1", []edit{{"unclaim", `redis.call('HDEL', KEYS[2], id)`, ``}}},
	{"a run handed back lets go of its job", "model", []edit{{"unclaim", `e.open = fresh`, `e.open = ''`}}},
	{"a request is not known by its row", "P1", []edit{{"trigger", ` or find_row(KEYS[6], id, true) then`, ` then`}}},
	{"a request handed back is not known", "P1", []edit{{"trigger", `{id, unpack(ARGV, 8)}`, `{id}`}}},
	{"a definition begins before what ran", "P2", []edit{{"define", ` or tonumber(cursor) <= (tonumber(e.last) or 0)`, ``}}},
	{"a definition is replaced from any cursor", "model", []edit{{"define", `(e.cursor ~= stood or (upcoming`, `((upcoming`}}},
	{"a definition passes over a tick that has come due", "model", []edit{{"define", ` or (upcoming ~= '' and tonumber(upcoming) <= ms)`, ``}}},
	{"a replaced definition leaves a hole", "P2", []edit{{"define", `append(KEYS[6 + i],`, `string.len(KEYS[6 + i],`}}},

	{"a tick of a pause is granted", "pause", []edit{{"claim", ` or (pf and t >= pf and t < pt) then return nil end`, ` then return nil end`}}},
	{"passes leave a gap", "P2", []edit{{"claim", `if first ~= at or l < f or`, `if l < f or`}}},
	{"passes end before they begin", "model", []edit{{"claim", `if first ~= at or l < f or`, `if first ~= at or`}}},
	{"a pass leads to one of its ticks", "model", []edit{{"claim", ` or (after ~= '' and tonumber(after) <= l) then`, ` then`}}},
	{"a tick does not follow upon the passes", "P2", []edit{{"claim", `if tick ~= at or (nxt`, `if (nxt`}}},
	{"a claim leads on to its own tick", "P2", []edit{{"claim", ` or (nxt ~= '' and tonumber(nxt) <= t) or`, ` or`}}},
	{"passes without a tick lead anywhere", "P2", []edit{{"claim", `return nxt == at and #list > 0 and list or nil`, `return #list > 0 and list or nil`}}},
	{"any tick is paused", "model", []edit{{"claim", `if not pf or f < pf or l >= pt then return nil end`, ``}}},
	{"paused ticks are missed", "model", []edit{{"claim", `elseif pf and l >= pf and f < pt then return nil end`, `end`}}},
	{"any tick is skipped", "model", []edit{{"claim", `if not bf or f < bf or l >= bt or tick == '' then return nil end`, ``}}},
	{"the latest busy tick is skipped", "model", []edit{{"claim", `if overlap and not latest then return nil end`, ``}}},
	{"an older busy tick runs", "model", []edit{{"claim", `if latest and (trigger`, `if false and (trigger`}}},
	{"busy ticks are missed", "model", []edit{{"claim", `if bf and l >= bf and f < bt then return nil end`, ``}}},
	{"ticks behind a run are missed", "model", []edit{{"claim", `if going and l >= going then return l > ms and 'early' or 'held' end`, ``}}},
	{"runs that may overlap hold the job", "model", []edit{{"claim", `elseif mode == 'a' then`, `elseif false then`}}},
	{"queue skips", "model", []edit{{"claim", `if held and (mode ~= 's' or not overlaps(e, at)) then`, `if held and not overlaps(e, at) then`}}},
	{"a late tick replaces", "model", []edit{{"claim", ` and overlaps(e, at) then raise`, ` then raise`}}},
	{"nothing is replaced", "model", []edit{{"claim", `raise(cancels, e.open, ms, '', '')`, ``}}},
	{"the last wish stands", "model", []edit{{"prelude", `redis.call('HSETNX', cancels`, `redis.call('HSET', cancels`}}},
	{"no time is busy", "model", []edit{{"prelude", `elseif mode ~= 'a' then`, `elseif false then`}}},
	{"the busy time begins with the last attempt", "model", []edit{{"prelude", `int(pair(e.busy) or tonumber(since))`, `int(tonumber(since))`}}},
	{"the busy time never ends", "model", []edit{{"claim", `  elseif e.open ~= id then
    e.open, e.busy = id, ''`, `  elseif e.open ~= id then
    e.open = id`}}},
	{"a busy time stays behind", "model", []edit{{"prelude", `if to <= at then e.busy = '' end`, ``}}},
	{"a crash is repeated without end", "model", []edit{{"prelude", ` and tonumber(r.attempt) < tonumber(r.most)`, ``}}},
	{"a crashed run lets go of its job", "model", []edit{{"prelude", `e.open = rerun and not over and fresh or ''`, `e.open = ''`}}},
	{"attempts are not counted", "P1", []edit{{"prelude", `attempt = int(r.attempt + 1)`, `attempt = r.attempt`}}},
	{"an attempt fills its tick's link once more", "P2", []edit{{"prelude", `prev = '', next = '', trigger = 'rerun', request = r.request`, `prev = r.prev, next = r.next, trigger = 'rerun', request = r.request`}}},
	{"a cancelled run is repeated", "model", []edit{{"prelude", ` and not wanted(k.cancels, id, r)`, ``}}},
	{"an attempt goes without its payload", "model", []edit{{"prelude", `holds = '1', of = r.of, param = r.param, payload = r.payload}))`, `holds = '1', of = r.of, param = r.param, payload = ''}))`}}},
	{"a wish outlives its run", "model", []edit{{"prelude", `  redis.call('HDEL', k.cancels, id)
  return true`, `  return true`}}},
	{"an end is not told", "model", []edit{{"prelude", `elseif r.shards == '1' then -- not`, `elseif false then -- not`}}},
	{"an end that follows upon a success is told", "model", []edit{{"prelude", ` and had_succeeded(history, r.tick) then`, ` and false then`}}},
	{"a failure is a success", "model", []edit{{"prelude", ` and outcome == 'succeeded' and (kind`, ` and (kind`}}},
	{"an end is not counted", "model", []edit{{"prelude", `  count(e, outcome, 1)`, ``}}},
	{"what is kept stays for ever", "model", []edit{{"prelude", `redis.call('HDEL', kept, run, 'p:' .. run)`, ``}}},
	{"a follower's tick is forgotten", "model", []edit{{"prelude", `if prev == '' and request == '' and e.cursor == '' then`, `if false then`}}},
	{"a cancelled run stays pending", "P2", []edit{{"cancel", `redis.call('HDEL', KEYS[4], id)`, ``}}},
	{"a run is cancelled for any job", "model", []edit{{"cancel", `if p.job ~= job then return 'unknown' end`, ``}}},
	{"a cancelled run holds its job", "model", []edit{{"cancel", `if e.open == id then let_go(e, ms) end`, ``}}},
	{"a cancelled run was not busy while it waited", "model", []edit{{"cancel", `let_go(e, ms)`, `e.open = ''`}}},
	{"a run that came too late was not busy while it waited", "model", []edit{{"claim", `let_go(e, ms)`, `e.open = ''`}}},
	{"a run handed back was not busy", "model", []edit{{"unclaim", `free(e, r.mode, r.granted, ms, true)`, ``}}},
	{"a rerun that never ran is told", "model", []edit{{"cancel", ` and (p.holds ~= '' or p.trigger ~= 'rerun')`, ``}}},
	{"a cancelled run is handed back", "model", []edit{{"unclaim", `if flag then`, `if false then`}}},
	{"ticks that come again are first ones", "P1", []edit{{"rewind", `int(attempt + 1)`, `'1'`}}},
	{"a cursor is set back under a run", "P2", []edit{{"rewind", `any(KEYS[4], run_of, job, function() return true end)`, `false`}}},
	{"a cursor is set back to where nothing is known", "model", []edit{{"rewind", ` or tonumber(to) < tonumber(base)`, ``}}},
	{"a cursor is set back in silence", "P2", []edit{{"rewind", `append(KEYS[6],`, `string.len(KEYS[6],`}}},
	{"a cursor is set forward", "model", []edit{{"rewind", `if e.cursor ~= '' and tonumber(to) >= tonumber(e.cursor) then`, `if false then`}}},
	{"a cursor that was set back begins before a pause", "pause", []edit{{"rewind", `stretch(e, ms)`, ``}}},
	{"an operator's attempt goes beside another", "model", []edit{{"rerun", `if ahead or any(KEYS[2], run_of, job, same) or any(KEYS[4], pending_of, job, same) then`, `if false then`}}},
	{"an operator asks twice", "model", []edit{{"rerun", `if under_way(KEYS[2], KEYS[4], ids) then return 'queued' end`, ``}}},
	{"a pause begins when it is asked for", "pause", []edit{{"pause", `math.min(from or ms, ms, tonumber(e.cursor) or ms)`, `from or ms`}}},
	{"the end of a pause forgets its ticks", "model", []edit{{"pause", `e.pause = int(from) .. ',' .. int(ms)`, `e.pause = ''`}}},
	{"a run handed back does not wait for a pause's end", "pause", []edit{{"claim", `if p.holds ~= '' then return 'held', 'a pause' end`, ``}}},
	{"a follower runs while it is paused", "pause", []edit{{"claim", `if after then return 'paused', 'paused' end`, ``}}},
	{"a late follower runs", "model", []edit{{"claim", `if (after or back) and drop ~= '' then return 'missed', drop end`, ``}}},
	{"a tick is told of twice", "P1", []edit{{"relay", `if before then --`, `if false then --`}}},
	{"a follower that nobody holds waits", "model", []edit{{"relay", `local unheld = ARGV`, `local unheld = false and ARGV`}}},
	{"a tick that was skipped is missed as well", "model", []edit{{"relay", `(not may_run or reason`, `(not succeeded or reason`}}},
	{"what a job was not told before it came to follow another one vanishes", "model", []edit{{"relay", `not (e and replaced())`, `true`}}},
	{"anybody is told", "model", []edit{{"relay", `local follows, e = following(), entry_of(text)`, `local follows, e = true, entry_of(text)`}}},
	{"a label is taken for what a job follows", "model", []edit{{"relay", `return ok and d.after == upstream`, `return true`}}},
	{"anything is put off", "model", []edit{{"postpone", ` or tonumber(due) ~= tonumber(ARGV[2]) then`, ` then`}}},
	{"a job is removed under its runs", "P2", []edit{{"remove", `if any(KEYS[4], run_of, job, function() return true end) then return 'held' end`, ``}}},
	{"a removed job's runs stay pending", "model", []edit{{"remove", `redis.call('HDEL', KEYS[6], all[i - 1])`, ``}}},
}

// mutantOps bounds a mutant's trace; most are caught within the first hundred operations.
const mutantOps = 3000

// mutantSeeds is how many traces a mutant may survive: what most break is found in the first one.
const mutantSeeds = 20

// seldom are those that few traces find, with the seed at which their search begins, to save the time of the others.
var seldom = map[string]uint64{
	"a tick is told of twice":                                23,
	"a removed job's open tick stays wanted":                 11,
	"a cursor that was set back begins before a pause":       6,
	"a definition begins before what ran":                    5,
	"the busy time begins anew with the tick that is opened": 4,
	"a follower runs while it is paused":                     4,
	"a late follower runs":                                   3,
	"passes end before they begin":                           3,
	"a follower that nobody holds waits":                     2,
	"any tick is skipped":                                    2,
	"a pass leads to one of its ticks":                       2,
	"a tick of a pause is granted":                           2,
	"an older busy tick runs":                                2,
	"busy ticks are missed":                                  2,
	"the cancelling of a tick does not end its attempts":     2,
}

// TestMutants: the trace's checks see each broken script. The unbroken one passes TestTrace.
func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) { m.hunt(t, func(*trace) {}) })
	}
}

// hunt looks for a mutant in several traces.
func (m mutant) hunt(t *testing.T, setUp func(*trace)) {
	t.Helper()
	useScripts(t, slices.Concat(steered, m.edits)...)
	var all []map[string]int
	begin := max(seldom[m.name], 1)
	for seed := begin; seed < begin+mutantSeeds; seed++ {
		seen, caught := m.trace(t, seed, setUp)
		if all = append(all, seen); caught {
			t.Logf("seed %d: caught by, at operation: %v", seed, seen)
			return
		}
	}
	t.Fatalf("want it caught by %s; caught, at which operation: %v", m.caught, all)
}

// favour is the kind of operation that a mutant's trace has more of: the one whose script is broken, or else
// what it takes to see the difference.
func (m mutant) favour() string {
	switch kind := m.edits[0].script; kind {
	case "claim", "prelude", "settle", "reap", "renew", "reassert":
		for _, c := range [][2]string{{"pause", "pause"}, {"follow", "relay"}, {"cancel", "cancel"}, {"wish", "cancel"}, {"partition", "gate"}} {
			if strings.Contains(m.name, c[0]) {
				return c[1]
			}
		}
		return ""
	default:
		return kind
	}
}

// trace runs a mutant's trace until it is caught, and says what was wrong at which operation first.
func (m mutant) trace(t *testing.T, seed uint64, setUp func(*trace)) (seen map[string]int, caught bool) {
	t.Helper()
	tr := newTrace(seed, realRig(t, traceConfig))
	tr.world.favour = m.favour()
	setUp(tr)
	seen = map[string]int{}
	look := func() bool {
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
	tr.run(t, mutantOps, look)
	if seen["error"] > 0 {
		t.Fatalf("the changed script fails, which proves nothing: %v", tr.all())
	}
	return seen, look()
}
