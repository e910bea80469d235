package ledger

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// world makes up operations: mostly what nodes would do given what stands in the ledger, and
// often enough what a late, mistaken, repeating or lying node would do.
type world struct {
	rng   *rand.Rand
	us    int64
	runID string
	ids   int
	rig   *rig // the one looked at
	view  view

	claims   []asked
	reports  []Report
	returns  []Return
	seen     []Lease
	triggers []op
	ended    []Lease // were open once, perhaps still are
	planted  []plant // to be put back
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
}

// rhythm is a schedule: every so many ms, and no more after end.
type rhythm struct{ every, end int64 }

func (r rhythm) next(after int64) int64 {
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

var rhythms = map[string]rhythm{
	"d-half": {every: 500}, "d-second": {every: 1000}, "d-seven": {every: 7000}, "d-minute": {every: 60_000}, "d-day": {every: 86_400_000},
	"d-ending": {every: 1000, end: noon + 200_000},
}

var (
	digests  = []string{"d-half", "d-second", "d-seven", "d-minute", "d-day", "d-ending"}
	jobNames = []string{"a", "b.c", "c:d/e", "d-1", "e", "f", "g", "h", "i-%d", "[j]*"}
	claimers = []Claimer{{"n1", "alpha"}, {"n2", "beta"}, {"n3", "gamma.example:7/x"}}
	ends     = []jobs.Outcome{jobs.OutcomeSucceeded, jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeCancelled, jobs.OutcomeLost}
)

func newWorld(seed uint64) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 1)), us: noon*1000 + 123_456, runID: "0123456789abcdef0123"}
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
	for _, s := range all {
		if s.Err == nil {
			w.view.jobs[s.Job] = s
			w.view.names = append(w.view.names, s.Job)
		}
	}
	for _, l := range open {
		if l.Pending() {
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
	if w.chance(3) {
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
	switch n := w.rng.IntN(100); {
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
	case n < 96:
		o = w.define(o)
		return o, len(o.defs) > 0
	default:
		return w.plant(o)
	}
}

func (w *world) claim(o op) op {
	o.kind, o.by = "claim", pick(w, claimers)
	here := w.part()
	for _, name := range some(w, keepIf(jobNames, here), 6) {
		old := keepIf(w.claims, func(a asked) bool { return a.claim.Job == name })
		var c Claim
		switch s, known := w.view.jobs[name]; {
		case len(old) > 0 && w.chance(14):
			again := pick(w, old)
			if w.chance(80) {
				o.by = again.by
			}
			c = again.claim
		case !known:
			c = Claim{Job: name, Digest: pick(w, digests), Run: w.id("r"), TTL: 5 * time.Second, From: w.ms(), Tick: w.ms(), Next: w.ms() + 1}
		default:
			c = w.claimOf(s)
		}
		o.claims = append(o.claims, c)
		w.claims = remember(w.claims, asked{o.by, c}, 80)
	}
	return o
}

// claimOf is a claim for a job as it stands, mostly the right one.
func (w *world) claimOf(s Stored) Claim {
	c := Claim{Job: s.Job, Digest: s.Digest, TTL: time.Duration(3000+w.rng.IntN(9000)) * time.Millisecond}
	if w.chance(5) {
		c.Digest = pick(w, digests)
	}
	waiting := keepIf(w.view.pending, func(l Lease) bool { return l.Job == s.Job })
	if len(waiting) > 0 && w.chance(40) {
		c.Pending, c.Run = true, pick(w, waiting).Run
		if w.chance(5) {
			c.Run = w.id("nobody")
		}
		return c
	}
	r := rhythms[s.Digest]
	if w.chance(6) { // a node that sees another cursor
		s.Cursor = pick(w, []int64{0, s.Cursor - r.every, s.Cursor + r.every, s.Last})
	}
	c.Run, c.From, c.Tick, c.Trigger = w.id("r"), s.Cursor, s.Cursor, jobs.TriggerSchedule
	if n, newest := r.count(s.Cursor, w.ms()+1); s.Cursor != 0 && n > 1 && w.chance(40) {
		c.Missed, c.Until = n-1, newest-r.every
		c.Tick, c.Trigger = newest, jobs.TriggerCatchUp
	}
	c.Next = r.next(c.Tick)
	return c
}

func (w *world) settle(o op) op {
	o.kind = "settle"
	here := w.part()
	own := func(l Lease) bool { return here(l.Job) }
	if open := keepIf(w.view.leased, own); len(open) > 0 {
		for _, l := range some(w, open, 5) {
			o.reports = append(o.reports, w.report(l))
		}
	}
	if old := keepIf(w.reports, func(r Report) bool { return here(r.Job) }); len(old) > 0 && w.chance(40) {
		again := pick(w, old)
		if w.chance(30) {
			again.Outcome = pick(w, ends)
		}
		o.reports = append(o.reports, again)
	}
	if past := keepIf(w.ended, own); len(past) > 0 && w.chance(25) {
		o.reports = append(o.reports, w.report(pick(w, past)))
	}
	if w.chance(3) && len(o.reports) > 0 {
		o.reports = append(o.reports, w.report(Lease{Job: o.reports[0].Job, Run: w.id("nobody")}))
	}
	w.rng.Shuffle(len(o.reports), func(i, j int) { o.reports[i], o.reports[j] = o.reports[j], o.reports[i] })
	for _, r := range o.reports {
		w.reports = remember(w.reports, r, 60)
	}
	return o
}

func (w *world) report(l Lease) Report {
	return Report{Job: l.Job, Run: l.Run, Outcome: pick(w, ends), Started: l.Granted, Ended: max(0, w.ms()+w.rng.Int64N(200)-100),
		Reason: pick(w, []string{"", "by | hand", "two\nlines"}), Tries: w.rng.IntN(4),
		Error: pick(w, []string{"", "", "exit 1", "a|b|c", "1|R|x\n|\x00\xff%d", "grüße"})}
}

func (w *world) renew(o op) op {
	o.kind = "renew"
	for _, l := range some(w, append(slices.Clone(w.view.leased), w.ended...), 6) {
		o.renewals = append(o.renewals, locking.Renewal{Name: l.Job, Owner: l.Run, Token: l.Token, TTL: millisOf(max(l.TTL, 1000))})
	}
	slices.SortFunc(o.renewals, func(a, b locking.Renewal) int { return strings.Compare(a.Owner, b.Owner) })
	o.renewals = slices.CompactFunc(o.renewals, func(a, b locking.Renewal) bool { return a.Owner == b.Owner })
	return o
}

func (w *world) reap(o op) op {
	o.kind = "reap"
	here := w.part()
	list := w.view.leased
	if w.chance(35) {
		list = w.seen
	}
	list = keepIf(list, func(l Lease) bool { return here(l.Job) && (l.Until <= w.ms() || w.chance(25)) })
	if len(list) == 0 {
		return o
	}
	for _, l := range some(w, list, 4) {
		if w.chance(15) {
			l.Beat += 1 - 2*w.rng.Int64N(2)
		}
		o.seen = append(o.seen, l)
	}
	for _, l := range some(w, w.view.leased, 3) {
		w.seen = remember(w.seen, l, 20) // to be reaped later, by what was seen now
	}
	return o
}

func (w *world) unclaim(o op) op {
	o.kind = "unclaim"
	here := w.part()
	for _, l := range some(w, keepIf(w.view.leased, func(l Lease) bool { return here(l.Job) }), 3) {
		o.returns = append(o.returns, Return{Job: l.Job, Run: l.Run, Fresh: w.id("f")})
	}
	if old := keepIf(w.returns, func(r Return) bool { return here(r.Job) }); len(old) > 0 && w.chance(50) {
		o.returns = append(o.returns, pick(w, old))
	}
	for _, r := range o.returns {
		w.returns = remember(w.returns, r, 20)
	}
	return o
}

func (w *world) trigger(tb testing.TB, o op) op {
	tb.Helper()
	if len(w.triggers) > 0 && w.chance(45) {
		if again := pick(w, w.triggers); w.remembered(tb, again) {
			return again
		}
	}
	o.kind, o.job, o.run = "trigger", pick(w, jobNames), w.id("t")
	o.payload = pick(w, [][]byte{nil, []byte("p"), []byte("a|b\n|\x00\xff"), []byte(`{"n":1763726400123456}`)})
	w.triggers = remember(w.triggers, o, 25)
	return o
}

// remembered says whether the ledger can still know a request: a repeated one is the same run as
// long as the run is in flight or its row in the history.
func (w *world) remembered(tb testing.TB, o op) bool {
	tb.Helper()
	if _, known := w.view.jobs[o.job]; !known {
		return true
	}
	asked := func(l Lease) bool { return l.Run == o.run || l.Request == o.run }
	if slices.ContainsFunc(w.view.leased, asked) || slices.ContainsFunc(w.view.pending, asked) {
		return true
	}
	rows, _, err := w.rig.led.History(tb.Context(), []string{o.job})
	if err != nil {
		tb.Fatal(err)
	}
	return slices.ContainsFunc(rows[o.job], func(r Row) bool { return r.Run == o.run || r.Request == o.run })
}

func (w *world) define(o op) op {
	o.kind = "define"
	here := w.part()
	for _, name := range some(w, keepIf(jobNames, here), 3) {
		digest := pick(w, digests)
		r := rhythms[digest]
		d := Definition{Job: name, Digest: digest, Revision: fmt.Sprintf("%04d", w.rng.IntN(40)), Text: []byte("settings of " + digest + "|\n"),
			Cursor: r.next(w.ms())}
		if s, known := w.view.jobs[name]; known {
			if w.chance(25) {
				d.Digest = s.Digest
			}
			d.WasDigest, d.WasCursor, d.Until = s.Digest, s.Cursor, s.Last
			if w.chance(50) { // the others find out when the clock stepped back
				d.Cursor = r.next(max(w.ms(), s.Last))
			}
			if s.Cursor != 0 {
				if n, last := rhythms[s.Digest].count(s.Cursor, w.ms()+1); n > 0 {
					d.Until, d.Count = last, n
				}
				if d.Upcoming = s.Cursor; s.Cursor <= w.ms() {
					d.Upcoming = rhythms[s.Digest].next(w.ms())
				}
			}
			w.spoil(&d)
		}
		o.defs = append(o.defs, d)
	}
	return o
}

// spoil makes a replacement, at times, one that must not be carried out.
func (w *world) spoil(d *Definition) {
	switch w.rng.IntN(12) {
	case 0:
		d.WasDigest = ""
	case 1:
		d.WasDigest = pick(w, digests)
	case 2:
		d.WasCursor += 1000
	case 3:
		d.Cursor = w.ms() - w.rng.Int64N(3)*500
	case 4:
		d.Upcoming = w.ms() - w.rng.Int64N(3)*500
	}
}

// plant makes one record foreign, or puts the own one back; rarely it adds a foreign row.
func (w *world) plant(o op) (op, bool) {
	o.kind = "plant"
	if len(w.planted) > 0 && w.chance(60) {
		o.plant = w.planted[0]
		w.planted = w.planted[1:]
		return o, true
	}
	if len(w.planted) > 2 || len(w.view.names) == 0 {
		return o, false
	}
	switch n := w.rng.IntN(10); {
	case n < 3:
		name := pick(w, w.view.names)
		o.plant = plant{what: "entry", job: name, name: name}
	case n < 6 && len(w.view.leased) > 0:
		l := pick(w, w.view.leased)
		o.plant = plant{what: "run", job: l.Job, name: l.Run}
	case n < 9 && len(w.view.pending) > 0:
		l := pick(w, w.view.pending)
		o.plant = plant{what: "pending", job: l.Job, name: l.Run}
	case n == 9:
		o.plant = plant{what: "row", job: pick(w, w.view.names), record: "2|Q|1|2|from|a|newer|version"}
	default:
		return o, false
	}
	return o, true
}
