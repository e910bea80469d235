package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/escapement/escapement/jobs"
)

// world makes up operations: mostly what nodes would do given what stands in the ledger, and
// often enough what a late, mistaken, repeating or lying node would do.
type world struct {
	rng     *rand.Rand
	us      int64
	runID   string
	ids     int
	favour  string // a kind of operation that comes more often than others
	sharded bool   // most jobs have shards
	failing bool   // servers take each other's place; else a restart loses nothing
	rig     *rig   // the one looked at
	view    view

	claims   []asked
	reports  []Report
	returns  []Return
	burnt    map[string]bool // runs that were handed back
	seen     []Lease
	triggers []op
	events   []Event // told lately
	ended    []Lease // were open once, perhaps still are
	planted  []plant // to be put back
	defs     []Definition
	held     []*holding
	floor    int64           // Redis' clock does not step back to before a failover, µs
	repeated map[string]bool // runs that were granted as a later attempt
}

type asked struct {
	by    Claimer
	claim Claim
}

// view is what a node may know: what stands in the ledger.
type view struct {
	jobs            map[string]Stored
	names           []string // of jobs in it, by name
	leased, pending []Lease
	gates           [tracePartitions]string
}

// rhythm is a schedule, every so many ms, and no more after end; and what else its definition says.
// One without a period is of a job that follows another.
type rhythm struct {
	every, end int64
	overlap    jobs.Overlap
	attempts   int
	after      string
	shards     int
	params     []string
}

func (r rhythm) next(after int64) int64 {
	if r.every == 0 {
		return 0
	}
	n := (after/r.every + 1) * r.every
	if r.end != 0 && n > r.end {
		return 0
	}
	return n
}

// count is the number of ticks in [from, before), from being one, and the last of them.
func (r rhythm) count(from, before int64) (n, last int64) {
	if r.end != 0 {
		before = min(before, r.end+1)
	}
	if before <= from {
		return 0, 0
	}
	n = (before-1-from)/r.every + 1
	return n, from + (n-1)*r.every
}

func (r rhythm) definition(digest string) []byte {
	if r.after != "" {
		return fmt.Appendf(nil, `{"name":"x","labels":{"after":"aa"},"after":"%s"}`, r.after)
	}
	return []byte("settings of " + digest + "|\n")
}

var rhythms = ofBoth(map[string]rhythm{
	"d-half":   {every: 500, overlap: jobs.OverlapAllow, attempts: 3},
	"d-quick":  {every: 700, overlap: jobs.OverlapQueue, attempts: 3},
	"d-second": {every: 1000},
	"d-crash":  {every: 1500, attempts: 3},
	"d-two":    {every: 2000, overlap: jobs.OverlapReplace},
	"d-three":  {every: 3000, overlap: jobs.OverlapAllow},
	"d-seven":  {every: 7000, overlap: jobs.OverlapQueue, attempts: 2},
	"d-minute": {every: 60_000, overlap: jobs.OverlapReplace, attempts: 3},
	"d-day":    {every: 86_400_000},
	"d-ending": {every: 1000, end: noon + 200_000, overlap: jobs.OverlapQueue},
	"d-parts":  {every: 1500, shards: 3, attempts: 2, params: []string{"north | west", "", "süd,ost"}},
	"d-pair":   {every: 2500, overlap: jobs.OverlapQueue, shards: 2, attempts: 3},
	"d-four":   {every: 4000, overlap: jobs.OverlapAllow, shards: 4, attempts: 2, params: []string{"a", "b", "c", "d"}},
	"d-swap":   {every: 3000, overlap: jobs.OverlapReplace, shards: 2, attempts: 2, params: []string{"%2C", "+"}},
	"d-split":  {every: 1000, end: noon + 300_000, shards: 2},
	"a-parts":  {after: "aa", attempts: 2, shards: 3},
	"a-pair":   {after: "h", overlap: jobs.OverlapQueue, shards: 2, params: []string{"1", "2"}},
	"a-skip":   {after: "aa", attempts: 2},
	"a-queue":  {after: "aa", overlap: jobs.OverlapQueue, attempts: 2},
	"a-other":  {after: "b.c", overlap: jobs.OverlapReplace, attempts: 2},
	"a-allow":  {after: "c:d/e", overlap: jobs.OverlapAllow},
	"a-chain":  {after: "h", overlap: jobs.OverlapSkip},
})

var (
	digests   = []string{"d-half", "d-quick", "d-second", "d-crash", "d-two", "d-three", "d-seven", "d-minute", "d-day", "d-ending", "d-parts", "d-pair", "d-four", "d-swap", "d-split"}
	following = []string{"a-skip", "a-queue", "a-other", "a-allow", "a-chain", "a-parts", "a-pair"}
	jobNames  = []string{"aa", "b.c", "c:d/e", "d-1", "e", "f", "g", "h", "i-%d", "[j]*"}
	claimers  = []Claimer{{"n1", "alpha"}, {"n2", "beta"}, {"n3", "gamma.example:7/x"}}
	ends      = []jobs.Outcome{jobs.OutcomeSucceeded, jobs.OutcomeSucceeded, jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeCancelled, jobs.OutcomeLost}
)

// follows says which jobs have no schedule and follow another. They stay what they are: what a job that
// changes to and fro has run, nobody remembers for ever.
func follows(job string) bool { return job == "h" || job == "i-%d" || job == "[j]*" }

// digestFor is a definition that the job may have.
func (w *world) digestFor(job string) string {
	list := digests
	if follows(job) {
		list = following
	}
	if w.sharded && w.chance(80) {
		list = keepIf(list, func(digest string) bool { return rhythms[digest].shards > 1 })
	}
	if w.chance(30) {
		return otherGeneration(pick(w, list))
	}
	return pick(w, list)
}

func newWorld(seed uint64) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 1)), us: noon*1000 + 123_456, runID: "0123456789abcdef0123", burnt: map[string]bool{}, repeated: map[string]bool{}}
}

// look reads what the next operation starts from.
func (w *world) look(tb testing.TB, r *rig) {
	tb.Helper()
	all, err := r.led.Jobs(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	open, err := r.led.Open(tb.Context(), jobNames...)
	if err != nil {
		tb.Fatal(err)
	}
	w.rig, w.view = r, view{jobs: map[string]Stored{}}
	for p, k := range r.led.keys {
		w.view.gates[p] = r.client.Get(tb.Context(), k.gate).Val()
	}
	for _, s := range all {
		if s.Err == nil {
			w.view.jobs[s.Job] = s
			w.view.names = append(w.view.names, s.Job)
		}
	}
	for _, l := range open {
		if l.Pending() || l.Whole {
			w.view.pending = append(w.view.pending, l)
		} else {
			w.view.leased = append(w.view.leased, l)
			w.ended = remember(w.ended, l, 60)
		}
	}
}

func remember[T any](list []T, x T, most int) []T {
	list = append(list, x)
	return list[max(0, len(list)-most):]
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

func pick[T any](w *world, list []T) T { return list[w.rng.IntN(len(list))] }

// some picks up to n of list, each once, in any order.
func some[T any](w *world, list []T, n int) []T {
	list = slices.Clone(list)
	w.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(len(list), 1+w.rng.IntN(n))]
}

func (w *world) id(kind string) string {
	w.ids++
	return fmt.Sprintf("%s-%d", kind, w.ids) // one id may begin with another
}

func (w *world) ms() int64 { return w.us / 1000 }

// tick moves Redis' clock: mostly on, by nothing or little; at times far, or back; and now and
// then the server is another one.
func (w *world) tick() {
	switch n := w.rng.IntN(1000); {
	case n < 300: // within one microsecond
	case n < 700:
		w.us += w.rng.Int64N(1_000_000)
	case n < 920:
		w.us += w.rng.Int64N(12_000_000)
	case n < 955:
		w.us -= w.rng.Int64N(8_000_000)
	case n < 965:
		w.us -= w.rng.Int64N(60_000_000)
	case n < 975:
		w.us += w.rng.Int64N(900_000_000)
	case n < 977:
		w.us += 30 * 3600 * 1_000_000
	default:
	}
	w.us = max(w.us, w.floor)
	if w.chance(3) && !w.failing {
		w.runID = fmt.Sprintf("%012x%08x", w.rng.Int64N(1<<48), w.rng.Int32())
	}
}

// believed is a caller's idea of Redis' clock: within the tolerance, and at times just beyond it.
func (w *world) believed() int64 {
	switch w.rng.IntN(20) {
	case 0:
		return w.ms() + 1001 + w.rng.Int64N(5000)
	case 1:
		return w.ms() - 1001 - w.rng.Int64N(5000)
	case 2:
		return w.ms() + pick(w, []int64{1000, -1000})
	}
	return w.ms() + w.rng.Int64N(400) - 200
}

// part picks one partition, and says whether a job lives there.
func (w *world) part() func(job string) bool {
	p := w.rng.IntN(tracePartitions)
	return func(job string) bool { return Partition(job, tracePartitions) == p }
}

func keepIf[T any](list []T, ok func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !ok(x) })
}

// next makes up one operation. It may be one with nothing in it; then ok is false.
func (w *world) next(tb testing.TB) (o op, ok bool) {
	tb.Helper()
	o.now = w.believed()
	if w.favour != "" && w.chance(30) {
		return w.oneOf(tb, w.favour, o)
	}
	if o, ok, done := w.atGate(tb, o); done {
		return o, ok
	}
	switch n := w.rng.IntN(120); {
	case n < 42:
		o = w.claim(o)
		return o, len(o.claims) > 0
	case n < 62:
		o = w.settle(o)
		return o, len(o.reports) > 0
	case n < 70:
		o = w.renew(o)
		return o, len(o.renewals) > 0
	case n < 78:
		o = w.reap(o)
		return o, len(o.seen) > 0
	case n < 83:
		o = w.unclaim(o)
		return o, len(o.returns) > 0
	case n < 89:
		return w.trigger(tb, o), true
	case n < 95:
		o = w.define(o)
		return o, len(o.defs) > 0
	case n < 116:
		return w.operate(tb, o)
	default:
		return w.plant(o)
	}
}
