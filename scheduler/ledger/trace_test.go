package ledger

import (
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	firstSeed = flag.Uint64("ledger.seed", 3, "first seed of the random traces")
	seeds     = flag.Int("ledger.seeds", 2, "how many traces, with seeds that follow each other")
	traceOps  = flag.Int("ledger.ops", 2000, "operations in a trace")
)

const tracePartitions = 2

// traceConfig keeps little, so that trimming by count and by age happens all the time.
var traceConfig = Config{Partitions: tracePartitions, Keep: 16, KeepFor: 20 * time.Minute}

// trace replays one seed's operations on one or more servers, and holds every reply and, at
// intervals, every key against the other servers, the model and the promises.
type trace struct {
	rigs     []*rig // the first is the one that operations are made up from
	world    *world
	model    *model // nil: not compared
	promises *promises

	moment *moment // that the servers may be set back to
	high   int64   // the latest time so far, µs

	step   int
	done   []string // the last operations, for the report
	counts map[string]int
	closed map[string]bool    // sharded ticks
	late   map[string][]int64 // job -> when it was asked to be put off to
	wrong  []string           // what disagreed: "servers", "model", "chain", or a promise's number, then what
}

func newTrace(seed uint64, rigs ...*rig) *trace {
	return &trace{rigs: rigs, world: newWorld(seed), model: newModel(traceConfig), promises: newPromises(), counts: map[string]int{}, late: map[string][]int64{},
		closed: map[string]bool{}}
}

func (tr *trace) bad(format string, args ...any) {
	tr.wrong = append(tr.wrong, fmt.Sprintf(format, args...))
}

// run does n operations, or fewer when stop says so after one of them.
func (tr *trace) run(tb testing.TB, n int, stop func() bool) {
	tb.Helper()
	for tr.step = 1; tr.step <= n && !stop(); tr.step++ {
		if !tr.one(tb) {
			continue
		}
		if tr.step%50 == 0 || tr.step == n {
			tr.check(tb)
		}
	}
}

// one does what comes next, and says whether there was anything.
func (tr *trace) one(tb testing.TB) bool {
	tb.Helper()
	w := tr.world
	w.tick()
	w.look(tb, tr.rigs[0])
	switch {
	case !w.failing:
	case tr.moment == nil && w.chance(10):
		tr.note(tb)
	case tr.moment != nil && w.chance(8):
		tr.failover(tb)
		return true
	case len(w.held) > 0 && w.chance(2): // for no reason
		tr.reassert(tb, pick(w, w.parts(w.held)))
		return true
	}
	o, ok := w.next(tb)
	if ok && w.failing {
		w.bind(&o)
	}
	if ok {
		tr.do(tb, o)
	}
	return ok
}

func (tr *trace) do(tb testing.TB, o op) (first reply) {
	tb.Helper()
	w := tr.world
	if o.kind == "plant" && !tr.record(tb, &o.plant) {
		return reply{}
	}
	tr.high = max(tr.high, w.us)
	replies := make([]reply, len(tr.rigs))
	var raw [][]string
	for i, r := range tr.rigs {
		r.clock(tb, w.us, w.runID)
		r.raw.take()
		replies[i] = o.on(tb.Context(), r)
		raw = append(raw, r.raw.take())
	}
	tr.done = remember(tr.done, fmt.Sprintf("%d at %d of %.12s: %v\n  -> %v", tr.step, w.us, w.runID, o, replies[0]), 6)
	for i := range replies[1:] {
		if !reflect.DeepEqual(raw[0], raw[i+1]) || !reflect.DeepEqual(replies[0], replies[i+1]) {
			tr.bad("servers: %s replied\n  %s\n%s\n  %s", tr.rigs[0].name, raw[0], tr.rigs[i+1].name, raw[i+1])
		}
	}
	if err := replies[0].err; strings.HasPrefix(err, "error:") {
		tr.bad("%s", err)
	}
	tr.count(o, replies[0])
	tr.promises.see(o, replies[0], w.ms())
	if w.failing {
		w.holds(o, replies[0])
	}
	if o.kind == "postpone" {
		tr.late[o.late.Job] = append(tr.late[o.late.Job], o.until)
	}
	if tr.model == nil {
		return replies[0]
	}
	tr.model.us, tr.model.runID, tr.model.server = w.us, w.runID[:12], w.runID
	if want := tr.model.do(o); !reflect.DeepEqual(want, replies[0]) {
		tr.bad("model: wants the reply\n  %v\ngot\n  %v", want, replies[0])
	}
	return replies[0]
}

func (tr *trace) count(o op, r reply) {
	for i, a := range r.answers {
		tr.counts["claim "+a.Verdict.String()]++
		if _, open := gateAt(tr.world.view.gates[Partition(o.claims[i].Job, tracePartitions)]); a.Verdict == Granted && !open {
			tr.counts["claim granted before the gate closed"]++
		}
		if a.Verdict == Superseded && a.Detail == otherGeneration(o.claims[i].Digest) {
			tr.counts["claim superseded by another generation"]++
		}
	}
	for _, w := range r.words {
		tr.counts[o.kind+" "+string(w)]++
	}
	for _, a := range r.renewed {
		tr.counts[fmt.Sprintf("renew %v", a)]++
	}
	for i, d := range r.defined {
		tr.counts[o.kind+" "+d.Word]++
		if d.Word == "replaced" && o.defs[i].Same {
			tr.counts["cursor stays"]++
		}
	}
	for _, a := range r.asserted {
		tr.counts["reassert "+string(a.Word)]++
	}
	if len(r.answers)+len(r.words)+len(r.renewed)+len(r.defined)+len(r.asserted) == 0 {
		tr.counts[strings.TrimSpace(o.kind+" "+string(r.word)+strings.SplitN(r.err, " ", 2)[0])]++
	}
}

// all is everything that went wrong so far.
func (tr *trace) all() []string { return append(tr.promises.broken, tr.wrong...) }

func (tr *trace) report(tb testing.TB, seed uint64) {
	tb.Helper()
	if wrong := tr.all(); len(wrong) > 0 {
		tb.Fatalf("seed %d (run with -ledger.seed=%d -ledger.seeds=1), step %d: %d things wrong, first\n%s\nthe last operations:\n%s",
			seed, seed, tr.step, len(wrong), wrong[0], strings.Join(tr.done, "\n"))
	}
}

// TestTrace: whatever nodes ask, in whatever order and however wrong, the embedded and the real
// server give the same replies and hold the same keys, the slow twin agrees with both, and no
// promise is broken.
func TestTrace(t *testing.T) {
	useScripts(t, steered...)
	counts := map[string]int{}
	for seed := *firstSeed; seed < *firstSeed+uint64(*seeds); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			tr := newTrace(seed, realRig(t, traceConfig), embeddedRig(t, traceConfig))
			tr.world.sharded = seed%2 == 0
			tr.run(t, *traceOps, func() bool { return len(tr.all()) > 0 })
			tr.report(t, seed)
			t.Logf("seed %d: %d operations, answers %v", seed, tr.step-1, tr.counts)
			for answer, n := range tr.counts {
				counts[answer] += n
			}
		})
	}
	for _, answer := range everyAnswer {
		if counts[answer] == 0 && *traceOps**seeds >= 4000 {
			t.Errorf("no %q in %d traces of %d operations: they have become hollow", answer, *seeds, *traceOps)
		}
	}
}

// everyAnswer is what a trace of some length must have come across.
var everyAnswer = []string{"claim granted", "claim skipped", "claim moved", "claim early", "claim held", "claim superseded",
	"claim unknown", "claim foreign", "claim clock", "claim opened", "tick closed succeeded", "tick closed cancelled", "tick closed failed", "tick closed abandoned", "settle settled", "settle lost", "settle unknown", "settle foreign",
	"renew renewed", "renew gone", "reap reaped", "reap alive", "reap gone", "reap clock",
	"unclaim returned", "unclaim lost", "trigger", "trigger unknown", "trigger foreign",
	"define created", "define same", "define replaced", "define differs", "define foreign", "define clock", "plant",
	"claim passed", "cancel told", "cancel cancelled", "cancel refused", "cancel unknown", "rerun", "rerun refused",
	"rerun unknown", "pause", "pause refused", "resume", "rewind rewound", "rewind moved", "rewind refused", "rewind clock", "remove", "follow",
	"unfollow", "relay relayed", "relay stranger", "relayed", "postpone",
	"gate", "raise", "raise refused", "raise closed", "follow refused", "claim closed", "claim granted before the gate closed", "claim superseded by another generation", "cursor stays", "define standby",
	"define closed", "switch created", "switch same", "switch replaced", "switch differs", "switch standby", "switch closed", "trigger closed", "rerun closed",
	"rewind closed", "remove closed", "pause closed", "resume closed", "follow closed", "unfollow closed", "relay closed"}

// firstOf is the first job that lives in a partition.
func firstOf(tb testing.TB, p int) string {
	tb.Helper()
	i := slices.IndexFunc(jobNames, func(job string) bool { return Partition(job, tracePartitions) == p })
	if i < 0 {
		tb.Fatalf("no job in partition %d", p)
	}
	return jobNames[i]
}
