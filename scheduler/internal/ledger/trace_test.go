package ledger_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/model"
)

var (
	firstSeed = flag.Uint64("ledger.seed", 3, "first seed of the random traces")
	seeds     = flag.Int("ledger.seeds", 2, "how many traces, with seeds that follow each other")
	traceOps  = flag.Int("ledger.ops", 1000, "calls in a trace")
)

const tracePartitions = 2

// traceConfig keeps little, so that rows are trimmed by count and by age all the time.
var traceConfig = ledger.Config{Partitions: tracePartitions, Keep: 16, KeepFor: 20 * time.Minute}

// call is one call of the ledger: its name, for the report, and its function.
type call struct {
	name  string
	now   int64 // the caller's idea of Redis' time, ms; 0 when the script does not compare it
	args  any
	do    func(ctx context.Context, r *rig) (any, error)
	model func(m *model.Ledger) (any, error) // the model's answer; nil for a call that the model lacks
}

// failed spells an error, by what a caller makes of it.
func failed(err error) string {
	var clock *ledger.ClockError
	var closed *ledger.ClosedError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &closed):
		return fmt.Sprintf("closed %+v", *closed)
	case errors.As(err, &clock):
		return fmt.Sprintf("clock %d believed %d", clock.Redis.UnixMilli(), clock.Believed.UnixMilli())
	case errors.Is(err, ledger.ErrServer):
		return "server"
	case errors.Is(err, ledger.ErrUnknownJob):
		return "unknown job"
	case errors.Is(err, ledger.ErrUnknownRun):
		return "unknown run"
	case errors.Is(err, ledger.ErrRefused):
		return "refused"
	case errors.Is(err, ledger.ErrUnknownFormat):
		return "foreign"
	}
	return "error: " + err.Error()
}

// answersOf names the answers of a call, one for each item of a batch.
func answersOf(name string, reply any, err string) (all []string) {
	name, _, _ = strings.Cut(name, " ")
	if err != "" {
		kind, _, _ := strings.Cut(err, " ")
		return []string{name + " " + kind}
	}
	list := reflect.ValueOf(reply)
	for i := 0; list.Kind() == reflect.Slice && i < list.Len(); i++ {
		switch a := list.Index(i).Interface().(type) {
		case claim.Answer:
			all = append(all, name+" "+a.Verdict.String())
		case define.Defined:
			all = append(all, name+" "+a.Status)
		case epoch.Asserted:
			all = append(all, name+" "+string(a.Status))
		default:
			all = append(all, fmt.Sprint(name, " ", a))
		}
	}
	if word, ok := reply.(ledger.Status); ok {
		all = append(all, name+" "+string(word))
	}
	return all
}

// trace does one seed's calls on the servers, and compares every reply and, at intervals, every key
// with the other server's, and with the model.
type trace struct {
	rigs  []*rig // the first is the one that calls are made up from
	world *world
	model *model.Ledger // nil: not compared
	paths *paths        // nil: all have the shipped scripts

	backups []backup // of the servers, which may be set back to them
	high    int64    // the latest time so far, µs
	lost    bool     // they were

	step   int
	done   []string // the last calls, for the report
	counts map[string]int
	wrong  []string
}

func (tr *trace) bad(format string, args ...any) {
	tr.wrong = append(tr.wrong, fmt.Sprintf(format, args...))
}

// run does n calls, and stops at the first that something is wrong with.
func (tr *trace) run(t *testing.T, n int) {
	t.Helper()
	w := tr.world
	for tr.step = 1; tr.step <= n && len(tr.wrong) == 0; tr.step++ {
		w.tick()
		if w.all {
			tr.failover(t)
		}
		w.look(t, tr.rigs[0])
		if c := w.next(t); c != nil {
			tr.one(t, c)
		}
		if tr.step%50 == 0 || tr.step == n {
			tr.check(t)
		}
	}
	if len(tr.wrong) > 0 {
		t.Fatalf("step %d: %d things wrong, first\n%s\nthe last calls:\n%s", tr.step-1, len(tr.wrong), tr.wrong[0], strings.Join(tr.done, "\n"))
	}
}

// failover has, at times, other servers take the place of these, which lack the last writes.
func (tr *trace) failover(t *testing.T) {
	t.Helper()
	w := tr.world
	tr.high = max(tr.high, w.us)
	switch {
	case tr.backups == nil && w.chance(2):
		for _, r := range tr.rigs {
			tr.backups = append(tr.backups, r.backup(t))
		}
	case tr.backups != nil && w.chance(8):
		tr.lost = true
		for i, r := range tr.rigs {
			r.restore(t, tr.backups[i])
		}
		// The token rule holds for servers that are a second apart and whose clocks agree.
		tr.backups, w.us, w.runID = nil, tr.high+1_000_001, fmt.Sprintf("%012x%08x", w.rng.Int64N(1<<48), w.rng.Int32())
	}
}

// one does a call on each server and compares the replies.
func (tr *trace) one(t *testing.T, c *call) {
	t.Helper()
	w := tr.world
	var first any
	var refused string
	var raw []string
	for i, r := range tr.rigs {
		r.clock(t, w.us, w.runID)
		r.raw.take()
		tr.paths.use(i)
		reply, err := c.do(t.Context(), r)
		if i == 0 {
			first, refused, raw = reply, failed(err), r.raw.take()
			tr.paths.count(c.name, raw)
		} else if other := r.raw.take(); tr.paths == nil && !slices.Equal(raw, other) || !reflect.DeepEqual(first, reply) || refused != failed(err) {
			tr.bad("%s replied\n  %s\n%s\n  %s", tr.rigs[0].name, raw, r.name, other)
		}
	}
	tr.done = remember(tr.done, fmt.Sprintf("%d at %d of %.12s: %s now %d %+v\n  -> %+v %s", tr.step, w.us, w.runID, c.name, c.now, c.args, first, refused), 6)
	if strings.HasPrefix(refused, "error:") {
		tr.bad("%s", refused)
	}
	for _, answer := range answersOf(c.name, first, refused) {
		tr.counts[answer]++
	}
	if tr.model == nil {
		return
	}
	tr.model.At(w.us, w.runID[:12])
	var want any
	var wrong error
	if c.now != 0 && tr.model.ClockOff(c.now) {
		wrong = &ledger.ClockError{Redis: time.UnixMilli(w.ms()), Believed: time.UnixMilli(c.now)}
	} else {
		want, wrong = c.model(tr.model)
	}
	if failed(wrong) != refused || refused == "" && !reflect.DeepEqual(want, first) {
		tr.bad("the model wants the reply\n  %+v %v\ngot\n  %+v %s", want, wrong, first, refused)
	}
}

// check compares everything that is stored.
func (tr *trace) check(t *testing.T) {
	t.Helper()
	r := tr.rigs[0]
	keys := dump(t, r.client)
	for _, other := range tr.rigs[1:] {
		theirs := dump(t, other.client)
		for p := range r.led.Keys {
			if tr.paths != nil { // they write rows in other orders
				delete(keys, r.led.Keys[p].Recent)
				delete(theirs, r.led.Keys[p].Recent)
			}
		}
		for _, d := range differences(keys, theirs) {
			tr.bad("%s and %s differ in %s", r.name, other.name, d)
		}
	}
	if !tr.lost { // lying nodes' reports of lost runs can break any promise
		for _, what := range unsound(t.Context(), r.led) {
			tr.bad("%s", what)
		}
	}
	rows, _, err := query.History(t.Context(), r.led, jobNames)
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobNames {
		for _, row := range rows[job] {
			if row.IsTick {
				tr.counts["tick closed "+row.Outcome.String()]++
			}
		}
	}
	m := tr.model
	if m == nil {
		return
	}
	unlike(tr, "jobs", m.Jobs(), must(query.Jobs(t.Context(), r.led)))
	unlike(tr, "open runs", m.InFlight(), must(query.InFlight(t.Context(), r.led, jobNames...)))
	for _, job := range jobNames {
		unlike(tr, "history of "+job, m.History(job), rows[job])
	}
	kept, cancels := map[string]string{}, map[string]ledger.Cancel{}
	for _, k := range r.led.Keys {
		maps.Copy(kept, r.client.HGetAll(t.Context(), k.Kept).Val())
	}
	for _, c := range must(query.Cancels(t.Context(), r.led)) {
		cancels[c.Run] = c
	}
	if !maps.Equal(m.Kept(), kept) || !maps.Equal(m.Cancels(), cancels) {
		tr.bad("the model wants kept %q and the cancel requests %v\nthere are %q and %v", m.Kept(), m.Cancels(), kept, cancels)
	}
	for _, what := range r.indexes(t) {
		tr.bad("%s", what)
	}
}

// unlike compares the model's items with the stored ones.
func unlike[T any](tr *trace, what string, want, got []T) {
	for i := range max(len(want), len(got)) {
		if i >= len(want) || i >= len(got) || !reflect.DeepEqual(want[i], got[i]) {
			tr.bad("the model wants %d %s, there are %d; from number %d on%s\nthere is%s", len(want), what, len(got), i, many(want[min(i, len(want)):min(i+2, len(want))]), many(got[min(i, len(got)):min(i+2, len(got))]))
			return
		}
	}
}

// many prints a list, one item a line.
func many[T any](list []T) string {
	var b strings.Builder
	for _, x := range list {
		fmt.Fprintf(&b, "\n    %+v", x)
	}
	return b.String()
}

// indexes compares the sorted sets that a sweep looks at with the records they stand for.
func (r *rig) indexes(t *testing.T) (wrong []string) {
	t.Helper()
	want := map[string]map[string]int64{}
	add := func(key, name string, score int64) {
		if want[key] == nil {
			want[key] = map[string]int64{}
		}
		want[key][name] = score
	}
	var names []string
	for _, s := range must(query.Jobs(t.Context(), r.led)) {
		if names = append(names, s.Job); s.Cursor != 0 {
			add(r.led.Keys[r.led.Partition(s.Job)].Due, s.Job, s.Cursor)
		}
	}
	for _, l := range must(query.InFlight(t.Context(), r.led, names...)) {
		switch k := r.led.Keys[r.led.Partition(l.Job)]; {
		case l.IsOpenTick:
		case l.Pending():
			add(k.Pending, l.ID, l.Granted)
		default:
			add(k.Leases, l.ID, l.Until)
		}
	}
	for _, k := range r.led.Keys {
		for _, key := range []string{k.Due, k.Leases, k.Pending} {
			got := map[string]int64{}
			for _, z := range r.client.ZRangeWithScores(t.Context(), key, 0, -1).Val() {
				got[fmt.Sprint(z.Member)] = int64(z.Score)
			}
			if !maps.Equal(got, want[key]) {
				wrong = append(wrong, fmt.Sprintf("%s is %v, the records say %v", key, got, want[key]))
			}
		}
	}
	return wrong
}

// replay does the traces of all seeds, on a real and an embedded server, and wants every one of the
// answers somewhere: without them the traces show nothing. With the model, the calls are those
// that the model has, and its answers are compared too.
func replay(t *testing.T, modelled bool, answers ...string) {
	t.Helper()
	useScripts(t, steered...)
	counts := map[string]int{}
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			tr := &trace{rigs: []*rig{realRig(t, traceConfig), embeddedRig(t, traceConfig)}, world: newWorld(seed, !modelled), counts: counts}
			if modelled {
				tr.model = model.New(tr.rigs[0].led.Config)
			}
			t.Logf("run it alone with -ledger.seed=%d -ledger.seeds=1", seed)
			tr.run(t, *traceOps)
		})
	}
	t.Logf("answers: %v", counts)
	for _, answer := range answers {
		if counts[answer] == 0 && *traceOps**seeds >= 2000 {
			t.Errorf("no %q in %d traces of %d calls", answer, *seeds, *traceOps)
		}
	}
}

// TestTraceOfAllCalls has all calls at random, also calls that the model lacks: both servers give
// the same replies and hold the same keys.
func TestTraceOfAllCalls(t *testing.T) {
	replay(t, false, "claim granted", "claim closed", "claim opened", "settle settled", "switch standby", "cancel told", "cancel cancelled",
		"rerun refused", "rewind rewound", "rewind refused", "relay relayed", "pause closed", "raise refused", "reassert known", "reassert restored", "announce done", "announce closed", "store done", "tidy done")
}

// TestTrace has nodes claim and settle, in whatever order and however wrong: the embedded and the
// real server give the replies and hold the keys that the model wants.
func TestTrace(t *testing.T) {
	replay(t, true,
		"claim granted", "claim skipped", "claim stale", "claim early", "claim held", "claim superseded",
		"claim unknown", "claim clock", "claim opened", "claim passed", "tick closed succeeded", "tick closed cancelled", "tick closed abandoned",
		"settle settled", "settle lost", "settle unknown", "renew renewed", "renew gone", "reap reaped", "reap alive", "reap gone", "reap clock",
		"unclaim returned", "unclaim lost", "define created", "define same", "define replaced", "define differs", "trigger unknown")
}
