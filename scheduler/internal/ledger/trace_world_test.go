package ledger_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/model"
)

// world makes up calls: mostly a node's calls given the ledger's records, and often enough the
// calls of a late, mistaken, repeating or lying node.
type world struct {
	rng     *rand.Rand
	us      int64 // Redis' clock
	runID   string
	sharded bool // most jobs have shards
	all     bool // also calls that the model does not have
	ids     int
	rig     *rig // the one looked at

	jobs            map[string]query.Stored // the ledger's jobs
	names           []string                // of those jobs, in order
	leased, pending []ledger.Run

	claims   []asked // of late
	reports  []settle.Report
	returns  []settle.Return
	burnt    map[string]bool // runs that were handed back
	seen     []ledger.Run
	triggers []trigger
	ended    []ledger.Run // were leased lately, perhaps still are
}

type asked struct {
	by    claim.Claimer
	claim claim.Claim
}

type trigger struct {
	Job string
	operate.TriggerRequest
}

// rhythm is a schedule, every so many ms, and no more after end; and the rest of its definition. A
// rhythm without a period belongs to a follower.
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
	if before <= from || r.every == 0 {
		return 0, 0
	}
	n = (before-1-from)/r.every + 1
	return n, from + (n-1)*r.every
}

func (r rhythm) definition(digest string) []byte {
	_, job, _ := strings.Cut(digest, "@")
	if r.after != "" {
		return fmt.Appendf(nil, `{"name":"%s","labels":{"after":"aa"},"after":"%s"}`, job, r.after)
	}
	return fmt.Appendf(nil, `{"name":"%s","settings":"of %s|\n"}`, job, digest)
}

// rhythmOf is the rhythm of a digest, which is a rhythm's name and a job's.
func rhythmOf(digest string) rhythm {
	name, _, _ := strings.Cut(digest, "@")
	return rhythms[name]
}

var rhythms = map[string]rhythm{
	"d-half":   {every: 500, overlap: jobs.OverlapAllow, attempts: 3},
	"d-quick":  {every: 700, overlap: jobs.OverlapQueue, attempts: 3},
	"d-crash":  {every: 1500, attempts: 3},
	"d-two":    {every: 2000, overlap: jobs.OverlapReplace},
	"d-seven":  {every: 7000, overlap: jobs.OverlapQueue, attempts: 2},
	"d-minute": {every: 60_000, overlap: jobs.OverlapReplace, attempts: 3},
	"d-day":    {every: 86_400_000},
	"d-ending": {every: 1000, end: noon + 200_000, overlap: jobs.OverlapQueue},
	"d-parts":  {every: 1500, shards: 3, attempts: 2, params: []string{"north | west", "", "süd,ost"}},
	"d-pair":   {every: 2500, overlap: jobs.OverlapQueue, shards: 2, attempts: 3},
	"d-four":   {every: 4000, overlap: jobs.OverlapAllow, shards: 4, attempts: 2, params: []string{"a", "b", "c", "d"}},
	"d-swap":   {every: 3000, overlap: jobs.OverlapReplace, shards: 2, attempts: 2, params: []string{"%2C", "+"}},
	"a-parts":  {after: "aa", attempts: 2, shards: 3},
	"a-queue":  {after: "aa", overlap: jobs.OverlapQueue, attempts: 2},
	"a-other":  {after: "b.c", overlap: jobs.OverlapReplace},
}

var (
	jobNames = []string{"aa", "b.c", "c:d/e", "d-1", "e", "f", "g", "h", "i-%d", "[j]*"}
	claimers = []claim.Claimer{{ID: "n1", Name: "alpha"}, {ID: "n2", Name: "beta"}, {ID: "n3", Name: "gamma.example:7/x"}}
	ends     = []jobs.Outcome{jobs.OutcomeSucceeded, jobs.OutcomeSucceeded, jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeTimedOut,
		jobs.OutcomeCancelled, jobs.OutcomeLost}
)

func newWorld(seed uint64, all bool) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 1)), us: noon*1000 + 123_456, runID: "0123456789abcdef0123", sharded: seed%2 == 0, all: all,
		burnt: map[string]bool{}}
}

// look reads the state that the next call starts from.
func (w *world) look(t *testing.T, r *rig) {
	t.Helper()
	w.rig, w.jobs, w.names, w.leased, w.pending = r, map[string]query.Stored{}, nil, nil, nil
	for _, s := range must(query.Jobs(t.Context(), r.led)) {
		w.jobs[s.Job], w.names = s, append(w.names, s.Job)
	}
	for _, l := range must(query.InFlight(t.Context(), r.led, jobNames...)) {
		if l.Pending() || l.IsOpenTick {
			w.pending = append(w.pending, l)
		} else {
			w.leased, w.ended = append(w.leased, l), remember(w.ended, l, 60)
		}
	}
}

func remember[T any](list []T, x T, most int) []T {
	list = append(list, x)
	return list[max(0, len(list)-most):]
}

func (w *world) chance(percent int) bool { return w.rng.IntN(100) < percent }

func pick[T any](w *world, list []T) T { return list[w.rng.IntN(len(list))] }

// some picks up to n of a list, each once, in any order.
func some[T any](w *world, list []T, n int) []T {
	list = slices.Clone(list)
	w.rng.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list[:min(len(list), 1+w.rng.IntN(n))]
}

func keepIf[T any](list []T, ok func(T) bool) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return !ok(x) })
}

func each[T, U any](list []T, f func(T) U) []U {
	var all []U
	for _, x := range list {
		all = append(all, f(x))
	}
	return all
}

func (w *world) id(kind string) string {
	w.ids++
	return fmt.Sprintf("%s-%d", kind, w.ids) // one id may begin with another
}

func (w *world) ms() int64 { return w.us / 1000 }

// tick moves Redis' clock: mostly on, by nothing or little; at times far, or back. Now and then the
// server is another one.
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

// part picks one partition, and returns whether a job lives there.
func (w *world) part() func(job string) bool {
	p := w.rng.IntN(tracePartitions)
	return func(job string) bool { return ledger.Partition(job, tracePartitions) == p }
}

// next makes up one call; nil when no call is possible.
func (w *world) next(t *testing.T) *call {
	t.Helper()
	n := w.rng.IntN(95)
	if w.all && w.chance(40) {
		n = 100
	}
	switch {
	case n < 42:
		return w.claim()
	case n < 62:
		return w.settle()
	case n < 70:
		return w.renew()
	case n < 78:
		return w.reap()
	case n < 83:
		return w.unclaim()
	case n < 89:
		return w.trigger()
	case n < 95:
		return w.define()
	}
	return w.operate(t)
}

// batched is the call of a batch, nil when that is empty; the model answers one item after another.
func batched[T, U any](name string, now int64, batch []T, do func(ctx context.Context, r *rig) ([]U, error), answer func(m *model.Ledger, x T) U) *call {
	if len(batch) == 0 {
		return nil
	}
	return &call{name: name, now: now, args: many(batch), do: func(ctx context.Context, r *rig) (any, error) { return do(ctx, r) },
		model: func(m *model.Ledger) (any, error) { return each(batch, func(x T) U { return answer(m, x) }), nil }}
}

func (w *world) claim() *call {
	by, here, now := pick(w, claimers), w.part(), w.believed()
	var batch []claim.Claim
	for _, name := range some(w, keepIf(jobNames, here), 6) {
		old := keepIf(w.claims, func(a asked) bool { return a.claim.Job == name })
		var c claim.Claim
		switch s, known := w.jobs[name]; {
		case len(old) > 0 && w.chance(14):
			again := pick(w, old)
			if w.burnt[again.claim.Run] && again.claim.From == s.Cursor {
				continue // its node has had the answer; a copy that is late by more than max_skew is refused
			}
			if w.chance(80) {
				by = again.by
			}
			c = again.claim
		case !known:
			c = claim.Claim{Job: name, Digest: "d-day", Run: w.id("r"), TTL: 5 * time.Second, From: w.ms(), Tick: w.ms(), Next: w.ms() + 1}
		default:
			c = w.claimOf(s)
		}
		for batch = append(batch, c); c.Shard && w.chance(50); { // another shard of the tick
			parts := keepIf(w.pending, func(l ledger.Run) bool { return l.TickID != "" && l.Job == c.Job && l.ID != c.Run })
			if len(parts) == 0 {
				break
			}
			c.Run = pick(w, parts).ID
			batch = append(batch, c)
		}
	}
	for _, c := range batch {
		w.claims = remember(w.claims, asked{by, c}, 80)
	}
	return batched("claim by "+by.ID, now, batch, func(ctx context.Context, r *rig) ([]claim.Answer, error) {
		return claim.Send(ctx, r.led, by, now, batch)
	},
		func(m *model.Ledger, c claim.Claim) claim.Answer { return m.Claim(by, c) })
}

// claimOf is a claim for a job as it stands, mostly the right one.
func (w *world) claimOf(s query.Stored) claim.Claim {
	r := rhythmOf(s.Digest)
	c := claim.Claim{Job: s.Job, Digest: s.Digest, TTL: time.Duration(3000+w.rng.IntN(9000)) * time.Millisecond, Overlap: r.overlap, Attempts: r.attempts,
		Shards: r.shards, Params: r.params}
	if w.chance(6) {
		c.Digest = w.digestFor(s.Job)
		other := rhythmOf(c.Digest)
		c.Overlap, c.Shards, c.Params = other.overlap, other.shards, other.params
	}
	waiting := keepIf(w.pending, func(l ledger.Run) bool { return l.Job == s.Job && (!l.IsOpenTick || w.chance(5)) })
	if parts := keepIf(waiting, func(l ledger.Run) bool { return l.TickID != "" }); len(waiting) > 0 && (r.every == 0 || w.chance(40) || len(parts) > 0 && w.chance(50)) {
		l := pick(w, waiting)
		c.Pending, c.Run, c.Shard = true, l.ID, l.TickID != ""
		switch n := w.rng.IntN(100); {
		case c.Shard && n < 90:
		case n < 4:
			c.Run = w.id("nobody")
		case n < 10 || r.every == 0 && n < 25:
			c.Drop = ledger.ReasonStartWithin
		}
		return c
	}
	if w.chance(6) { // a node that sees another cursor
		s.Cursor = pick(w, []int64{0, s.Cursor - r.every, s.Cursor + r.every, s.Last})
	}
	c.Run, c.From, c.Trigger = w.id("r"), s.Cursor, jobs.TriggerSchedule
	if w.plan(&c, r, s.Entry); w.chance(2) {
		c.Next = 0 // by this node's time zones the schedule ends here
	}
	if w.chance(8) {
		w.misplan(&c)
	}
	return c
}

// plan fills in a claim's passes and tick, from its cursor on.
func (w *world) plan(c *claim.Claim, r rhythm, e ledger.Entry) {
	at, now := c.From, w.ms()
	pass := func(outcome jobs.Outcome, reason string, before int64) bool {
		n, last := r.count(at, min(before, now+1))
		if n < 1 {
			return false
		}
		c.Skipped = append(c.Skipped, ledger.SkippedRange{Outcome: outcome, Reason: reason, First: at, Last: last, Count: n, Next: r.next(last)})
		at = r.next(last)
		return true
	}
	begins := func(x ledger.Window) int64 { // where a window begins, if that is after at
		if x.From > at {
			return x.From
		}
		return math.MaxInt64
	}
	ends := func(x ledger.Window) int64 { // 0: it has no end
		if x.To == 0 {
			return math.MaxInt64
		}
		return x.To
	}
	busy := r.overlap == jobs.OverlapQueue || r.overlap == jobs.OverlapReplace
	for at != 0 && at <= now && len(c.Skipped) < 8 {
		switch {
		case e.Pause.Holds(at) && pass(jobs.OutcomePaused, ledger.ReasonPaused, ends(e.Pause)):
			continue
		case busy && e.Busy.Holds(at):
			c.Trigger = jobs.TriggerSchedule
			if _, last := r.count(at, min(e.Busy.To, now+1, begins(e.Pause))); last > at && pass(jobs.OutcomeSkipped, ledger.ReasonOverlap, last+int64(w.rng.IntN(8)/7)) && w.chance(8) {
				continue // at times also the latest of them, which has to run
			}
		case w.chance(45):
			before, reason := min(now+1, begins(e.Pause)), pick(w, []string{ledger.ReasonLate, ledger.ReasonStartWithin, ledger.ReasonCatchUpMax})
			if busy && reason != ledger.ReasonStartWithin && w.chance(90) {
				before = min(before, begins(e.Busy))
			}
			if _, last := r.count(at, before); last > at && w.chance(80) {
				before = last // but for the newest
			}
			if c.Trigger = jobs.TriggerCatchUp; pass(jobs.OutcomeMissed, reason, before) {
				continue
			}
		}
		c.Tick, c.Next = at, r.next(at)
		return
	}
	if c.Next = at; len(c.Skipped) == 0 {
		c.Tick, c.Next = at, r.next(at) // too early
	}
}

// misplan makes one mistake in a claim.
func (w *world) misplan(c *claim.Claim) {
	c.Skipped = slices.Clone(c.Skipped)
	fields := []*int64{&c.Tick, &c.Next}
	for i := range c.Skipped {
		p := &c.Skipped[i]
		fields = append(fields, &p.First, &p.Last, &p.Next)
	}
	pass := ledger.SkippedRange{Outcome: pick(w, []jobs.Outcome{jobs.OutcomeSkipped, jobs.OutcomePaused, jobs.OutcomeMissed}), Reason: ledger.ReasonOverlap,
		First: c.From, Last: c.From, Count: 1, Next: pick(w, []int64{c.Tick, c.From + 1})}
	switch n := w.rng.IntN(10); {
	case n < 6:
		f := pick(w, fields)
		*f += pick(w, []int64{-*f, -60_000, -1000, -500, -1, 1, 500, 1000, 60_000})
	case n < 7 || len(c.Skipped) == 0:
		c.Skipped = append(c.Skipped, pass)
	case n < 8:
		c.Skipped = c.Skipped[1:]
	case n < 9:
		c.Skipped[w.rng.IntN(len(c.Skipped))].Outcome = pass.Outcome
	default:
		c.Tick, c.Next = 0, c.Tick
	}
}

func (w *world) settle() *call {
	here := w.part()
	own := func(l ledger.Run) bool { return here(l.Job) }
	var batch []settle.Report
	for _, l := range some(w, keepIf(w.leased, own), 5) {
		batch = append(batch, w.report(l))
	}
	if old := keepIf(w.reports, func(r settle.Report) bool { return here(r.Job) }); len(old) > 0 && w.chance(40) {
		again := pick(w, old)
		if w.chance(30) {
			again.Outcome = pick(w, ends)
		}
		batch = append(batch, again)
	}
	if past := keepIf(w.ended, own); len(past) > 0 && w.chance(25) {
		batch = append(batch, w.report(pick(w, past)))
	}
	if w.chance(3) && len(batch) > 0 {
		batch = append(batch, w.report(ledger.Run{Job: batch[0].Job, ID: w.id("nobody")}))
	}
	w.rng.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	for _, r := range batch {
		w.reports = remember(w.reports, r, 60)
	}
	return batched("settle", 0, batch, func(ctx context.Context, r *rig) ([]ledger.Status, error) { return settle.Settle(ctx, r.led, batch) }, func(m *model.Ledger, rep settle.Report) ledger.Status {
		rep.Reason = ledger.Plain(rep.Reason)
		return m.Settle(rep)
	})
}

func (w *world) report(l ledger.Run) settle.Report {
	if w.chance(40) { // as most end
		return settle.Report{Job: l.Job, Run: l.ID, Token: l.Token, Outcome: jobs.OutcomeSucceeded, Started: l.Granted, Ended: w.ms(), Tries: 1}
	}
	r := settle.Report{Job: l.Job, Run: l.ID, Outcome: pick(w, ends), Started: l.Granted, Ended: max(0, w.ms()+w.rng.Int64N(200)-100),
		Reason: pick(w, []string{"", "by | hand", "two\nlines"}), Tries: w.rng.IntN(4),
		Error:  pick(w, []string{"", "", "exit 1", "a|b|c", "1|R|x\n|\x00\xff%d", "grüße"}),
		Output: pick(w, [][]byte{nil, nil, []byte("done\n"), []byte("1|R|\x00\xff%d")})}
	r.Rerun = r.Outcome == jobs.OutcomeLost || r.Outcome == jobs.OutcomeCancelled && w.chance(50) || w.chance(3)
	if w.chance(50) {
		r.Token = l.Token - int64(w.rng.IntN(100)/95)
	}
	return r
}

func (w *world) renew() *call {
	var batch []locking.Renewal
	for _, l := range some(w, append(slices.Clone(w.leased), w.ended...), 6) {
		batch = append(batch, locking.Renewal{Name: l.Job, Owner: l.ID, Token: l.Token - int64(w.rng.IntN(100)/96), TTL: millisOf(max(l.TTL, 1000))})
	}
	slices.SortFunc(batch, func(a, b locking.Renewal) int { return strings.Compare(a.Owner, b.Owner) })
	batch = slices.CompactFunc(batch, func(a, b locking.Renewal) bool { return a.Owner == b.Owner })
	return batched("renew", 0, batch, func(ctx context.Context, r *rig) ([]locking.RenewAnswer, error) {
		return settle.Renew(ctx, r.led, batch)
	}, (*model.Ledger).Renew)
}

func (w *world) reap() *call {
	here, list, now := w.part(), w.leased, w.believed()
	if w.chance(35) {
		list = w.seen
	}
	list = keepIf(list, func(l ledger.Run) bool { return here(l.Job) && (l.Until <= w.ms() || w.chance(25)) })
	batch := some(w, list, 4)
	for i := range batch {
		if w.chance(15) {
			batch[i].Beat += 1 - 2*w.rng.Int64N(2)
		}
	}
	for _, l := range some(w, w.leased, 3) {
		w.seen = remember(w.seen, l, 20) // to be reaped later, with this beat
	}
	return batched("reap", now, batch, func(ctx context.Context, r *rig) ([]ledger.Status, error) {
		return settle.Reap(ctx, r.led, now, r.epoch(), batch)
	}, (*model.Ledger).Reap)
}

func (w *world) unclaim() *call {
	here := w.part()
	var batch []settle.Return
	for _, l := range some(w, keepIf(w.leased, func(l ledger.Run) bool { return here(l.Job) }), 3) {
		batch = append(batch, settle.Return{Job: l.Job, Run: l.ID, Token: pick(w, []int64{0, l.Token, l.Token, l.Token - 1})})
	}
	if old := keepIf(w.returns, func(r settle.Return) bool { return here(r.Job) }); len(old) > 0 && w.chance(50) {
		batch = append(batch, pick(w, old))
	}
	for _, r := range batch {
		w.returns, w.burnt[r.Run] = remember(w.returns, r, 20), true
	}
	return batched("unclaim", 0, batch, func(ctx context.Context, r *rig) ([]ledger.Status, error) { return settle.Unclaim(ctx, r.led, batch) }, (*model.Ledger).Unclaim)
}

func (w *world) trigger() *call {
	x := trigger{Job: pick(w, jobNames), TriggerRequest: operate.TriggerRequest{Run: w.id("t"), Payload: pick(w, [][]byte{nil, []byte("p"), []byte("a|b\n|\x00\xff"), []byte(`{"n":1763726400123456}`)})}}
	if w.chance(20) {
		x.At = w.ms() + w.rng.Int64N(20_000) - 5000
	}
	if w.all && w.chance(20) {
		x.Unique = w.id("key")
	}
	if len(w.triggers) > 0 && w.chance(45) {
		x = pick(w, w.triggers)
	}
	w.triggers = remember(w.triggers, x, 25)
	return &call{name: "trigger", args: x,
		do: func(ctx context.Context, r *rig) (any, error) {
			return operate.Trigger(ctx, r.led, x.Job, x.TriggerRequest)
		},
		model: func(m *model.Ledger) (any, error) { return m.Trigger(x.Job, x.TriggerRequest) }}
}

// digestFor is a definition that the job may have. Three jobs are followers, where the trace has
// such.
func (w *world) digestFor(job string) string {
	after, sharded := w.all && slices.Index(jobNames, job) >= 7, w.sharded && w.chance(80)
	var list []string
	for digest, r := range rhythms {
		if (r.after != "") == after && (!sharded || r.shards > 1) {
			list = append(list, digest)
		}
	}
	slices.Sort(list)
	return pick(w, list) + "@" + job
}

func (w *world) define() *call {
	here, now := w.part(), w.believed()
	var batch []define.Definition
	for _, name := range some(w, keepIf(jobNames, here), 3) {
		digest := w.digestFor(name)
		s, known := w.jobs[name]
		if known && w.chance(25) {
			digest = s.Digest
		}
		r := rhythmOf(digest)
		d := define.Definition{Job: name, Digest: digest, Revision: fmt.Sprintf("%04d", w.rng.IntN(40)), Text: r.definition(digest), Cursor: r.next(w.ms())}
		if known {
			d.WasDigest, d.WasCursor, d.Until, d.Old = s.Digest, s.Cursor, s.Last, pick(w, []string{"", "@every|1s"})
			d.Cursor = r.next(max(w.ms(), s.Last)) // the clock may have stepped back
			if n, last := rhythmOf(s.Digest).count(s.Cursor, w.ms()+1); s.Cursor != 0 && n > 0 {
				d.Until, d.Count = last, n
			}
			if d.Upcoming = s.Cursor; s.Cursor != 0 && s.Cursor <= w.ms() {
				d.Upcoming = rhythmOf(s.Digest).next(w.ms())
			}
			if w.chance(30) {
				d.Same, d.WasCursor, d.Upcoming = w.chance(50), d.WasCursor-500*w.rng.Int64N(2), d.Upcoming-60_000*w.rng.Int64N(2)
			}
		}
		batch = append(batch, d)
	}
	c := batched("define", now, batch, func(ctx context.Context, r *rig) ([]define.Defined, error) {
		return define.Define(ctx, r.led, now, batch)
	}, func(m *model.Ledger, d define.Definition) define.Defined {
		d.Old = ledger.Plain(d.Old)
		return m.Define(d)
	})
	if epoch := w.rng.Int64N(3); w.all && w.chance(40) {
		c.name, c.do = "switch", func(ctx context.Context, r *rig) (any, error) { return define.Switch(ctx, r.led, now, epoch, batch) }
	}
	return c
}
