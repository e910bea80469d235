package ledger

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/escapement/escapement/jobs"
)

// story makes up the books of one job as the ledger would keep them, walking its schedule: runs, ticks
// that did not run, crashes and reruns, runs by hand, new definitions, a cursor set back, trimming.
type story struct {
	rng   *rand.Rand
	now   int64
	keep  int
	def   jobs.Definition
	sched *jobs.Schedule
	entry Entry
	rows  []Row
	open  []Lease
	top   map[int64]int           // tick -> the largest attempt granted
	lines map[line]int            // the same for each shard
	parts int                     // shards of a tick to be opened, or 1
	worst map[string]jobs.Outcome // of open ticks, so far
	used  map[string]bool         // run ids
}

var storySchedules = []string{"@every 500ms", "@every 7s", "*/5 * * * *", "H/10 * * * *", "0 */3 * * * *", "30 2 * * *", "CRON_TZ=Europe/Berlin 30 2 * * 0", "0 0 29 2 *"}

// newStory begins shortly before the clocks change in Berlin.
func newStory(seed uint64) *story {
	s := &story{rng: rand.New(rand.NewPCG(seed, 7)), keep: 16, top: map[int64]int{}, lines: map[line]int{}, used: map[string]bool{},
		now: time.Date(2025, 10, 25, 20, 0, 0, 0, time.UTC).UnixMilli()}
	if s.chance(50) {
		s.keep = 500
	}
	s.entry = Entry{Job: "a", Counts: map[jobs.Outcome]int64{}}
	s.define()
	s.entry.Cursor = s.after(s.now)
	s.entry.Base = s.entry.Cursor
	return s
}

func (s *story) chance(percent int) bool { return s.rng.IntN(100) < percent }

func (s *story) define() {
	s.def = jobs.Job{Name: "a", Schedule: storySchedules[s.rng.IntN(len(storySchedules))], TTL: time.Duration(5000+s.rng.IntN(9000)) * time.Millisecond}.Definition()
	switch s.rng.IntN(4) {
	case 0:
		s.def.Overlap = jobs.OverlapAllow
	case 1:
		s.def.Overlap = jobs.OverlapQueue
	}
	if s.chance(30) {
		s.def.CatchUp, s.def.CatchUpMax = jobs.CatchUpAll, 2
	}
	if s.chance(30) {
		s.def.StartWithin = 60_000
	}
	if s.parts = 1; s.chance(40) {
		s.parts = 2 + s.rng.IntN(3)
	}
	s.sched = must(jobs.ParseScheduleFor("a", s.def.Schedule, s.def.TimeZone))
	s.entry.Digest = s.def.Digest()
}

// after is the next tick, 0 for none.
func (s *story) after(at int64) int64 {
	if next := s.sched.Next(time.UnixMilli(at)); !next.IsZero() {
		return next.UnixMilli()
	}
	return 0
}

func (s *story) id() string {
	var b [16]byte
	for i := range b {
		b[i] = byte(s.rng.IntN(256))
	}
	b[6], b[8] = b[6]&0x0f|0x70, b[8]&0x3f|0x80
	return uuid.UUID(b).String()
}

// push appends a row and trims, as the scripts do.
func (s *story) push(r Row) {
	r.Job, r.At = "a", s.now
	if r.Ranged {
		s.entry.Counts[r.Outcome] += r.Count
	} else if !r.Whole {
		s.entry.Counts[r.Outcome]++
	}
	s.rows = append(s.rows, r)
	if len(s.rows)%16 != 0 {
		return
	}
	for len(s.rows) > s.keep {
		if old := s.rows[0]; old.Ranged || old.Prev != 0 && s.entry.Base != 0 && old.Prev >= s.entry.Base {
			s.entry.Base = old.Next
		}
		s.rows = s.rows[1:]
	}
}

// go lets time go by until the next tick is due, and perhaps some more.
func (s *story) wait() {
	if s.entry.Cursor > s.now {
		s.now = s.entry.Cursor
	}
	s.now += s.rng.Int64N(100_000)
}

func (s *story) holder() *Lease {
	for i := range s.open {
		if s.open[i].Holds {
			return &s.open[i]
		}
	}
	return nil
}

// grant takes the cursor's tick.
func (s *story) grant() {
	tick := s.entry.Cursor
	attempt := 1
	if s.entry.Again > tick {
		attempt = s.entry.AgainAttempt
	}
	s.entry.Cursor, s.entry.Last = s.after(tick), tick
	s.begin(Lease{Run: s.id(), Tick: tick, Prev: tick, Next: s.entry.Cursor, Attempt: attempt, Trigger: "schedule"})
}

func (s *story) lease(l Lease) {
	s.entry.Token = max(s.entry.Token+1, s.now*1000+s.rng.Int64N(1000))
	l.Job, l.Shards, l.Token, l.Node, l.NodeName, l.Granted = "a", max(1, l.Shards), s.entry.Token, "n1", "alpha", s.now
	l.Holds = s.def.Overlap != jobs.OverlapAllow && l.Of == "" // here: whether the run holds the job
	s.note(l)
	s.open = append(s.open, l)
}

// end ends a run in flight; one whose node died may be followed by another attempt.
func (s *story) end(i int) {
	l := s.open[i]
	s.open = slices.Delete(slices.Clone(s.open), i, i+1)
	outcome := []jobs.Outcome{jobs.OutcomeSucceeded, jobs.OutcomeFailed, jobs.OutcomeAbandoned, jobs.OutcomeTimedOut}[s.rng.IntN(4)]
	started := l.Granted + s.rng.Int64N(200)
	s.now = max(s.now, started)
	s.push(Row{Prev: l.Prev, Next: l.Next, Tick: l.Tick, Outcome: outcome, Shard: l.Shard, Shards: l.Shards, Attempt: l.Attempt, Tries: 1, Run: l.Run,
		Token: l.Token, Node: l.Node, NodeName: l.NodeName, Trigger: l.Trigger, Request: l.Request, Of: l.Of, Started: started})
	if outcome == jobs.OutcomeAbandoned && s.chance(60) && (l.Request != "" || s.lines[line{tick: l.Tick, shard: l.Shard}] == l.Attempt) {
		s.lease(Lease{Run: Successor(l.Run), Tick: l.Tick, Shard: l.Shard, Shards: l.Shards, Of: l.Of, Attempt: l.Attempt + 1, Trigger: "rerun", Request: l.Request})
	} else if l.Of != "" {
		s.part(l.Of, outcome)
	}
}

// handBack makes a run pending again, under another id; it is granted anew later.
func (s *story) handBack(i int) {
	l := s.open[i]
	s.open = slices.Delete(slices.Clone(s.open), i, i+1)
	l.Run = Successor(l.Run)
	s.lease(l)
}

// pass records some due ticks as not run.
func (s *story) pass() {
	last := s.entry.Cursor
	n := int64(1)
	for next := s.after(last); next != 0 && next <= s.now && s.chance(80); next = s.after(last) {
		last, n = next, n+1
	}
	reasons := []string{ReasonPaused}
	for _, r := range []string{ReasonLate, ReasonCatchUpMax, ReasonStartWithin, ReasonOverlap} {
		if possible(s.def, r) {
			reasons = append(reasons, r)
		}
	}
	reason := reasons[s.rng.IntN(len(reasons))]
	r := Row{Ranged: true, Prev: s.entry.Cursor, Next: s.after(last), Tick: s.entry.Cursor, Until: last, Count: n, Outcome: outcomeOf[reason], Reason: reason}
	s.entry.Cursor, s.entry.Last = r.Next, last
	s.push(r)
}

func (s *story) replace() {
	r := Row{Ranged: true, Prev: s.entry.Cursor, Tick: s.entry.Cursor, Outcome: jobs.OutcomeSuperseded, Reason: ReasonReplacedDef, Note: s.sched.String()}
	if s.entry.Cursor != 0 && s.entry.Cursor <= s.now {
		r.Count, r.Until = count(s.sched, s.entry.Cursor, s.now)
		s.entry.Last = r.Until
	}
	s.define()
	s.entry.Cursor = s.after(max(s.now, s.entry.Last))
	r.Next = s.entry.Cursor
	s.push(r)
}

func (s *story) rewind() {
	var to []int64
	for _, r := range s.rows {
		if r.Prev >= s.entry.Base && s.entry.Base != 0 && r.Prev < orNever(s.entry.Cursor) && isTick(s.sched, r.Prev) {
			to = append(to, r.Prev)
		}
	}
	if len(to) == 0 || len(s.open) > 0 {
		return
	}
	r := Row{Ranged: true, Prev: s.entry.Cursor, Next: to[s.rng.IntN(len(to))], Outcome: jobs.OutcomeSuperseded, Reason: ReasonRewound}
	r.Tick = r.Next
	attempt := slices.Max(append(slices.Collect(maps.Values(s.top)), 0)) + 1
	s.entry.Again, s.entry.AgainAttempt = max(s.entry.Again, s.entry.Cursor, s.entry.Last+1), attempt
	s.entry.Cursor, s.entry.Last = r.Next, r.Next-1
	s.push(r)
}

// rerun is an operator's wish. A tick that the cursor will come to again is not rerun before that.
func (s *story) rerun() {
	for _, r := range s.rows {
		ahead := r.Tick < s.entry.Again && r.Tick >= orNever(s.entry.Cursor)
		fresh := Successor(r.Run)
		if r.Ranged || s.used[fresh] || s.chance(80) || s.busy(r.Tick) {
			continue
		}
		l := Lease{Run: fresh, Request: fresh, Tick: r.Tick, Shard: r.Shard, Shards: r.Shards, Attempt: r.Attempt + 1, Trigger: "rerun"}
		alone := r.Shards > 1 && !r.Whole
		switch {
		case r.Request != "":
		case ahead:
			continue
		case alone:
			l.Request, l.Attempt = "", s.lines[line{tick: r.Tick, shard: r.Shard}]+1
		default:
			l.Request, l.Attempt = "", s.top[r.Tick]+1
		}
		if alone {
			s.lease(l)
			return
		}
		l.Shards = 1
		if s.begin(l); s.chance(50) {
			s.next()
		}
		return
	}
}

// go on does the next thing.
func (s *story) next() {
	s.now += s.rng.Int64N(5000)
	if len(s.open) > 0 && s.chance(65) {
		i := s.rng.IntN(len(s.open))
		switch {
		case s.open[i].Whole:
		case s.open[i].Pending():
			s.take(i)
		case s.chance(10):
			s.handBack(i)
		default:
			s.end(i)
		}
		return
	}
	held := s.holder() != nil
	switch n := s.rng.IntN(100); {
	case n < 45 && !held && s.entry.Cursor != 0:
		s.wait()
		s.grant()
	case n < 70 && s.entry.Cursor != 0:
		s.wait()
		s.pass()
	case n < 78 && !held:
		id := s.id()
		s.begin(Lease{Run: id, Request: id, Tick: s.now, Attempt: 1, Trigger: "manual"})
	case n < 83 && !held:
		s.rerun()
	case n < 93:
		s.replace()
	case n < 97:
		s.rewind()
	}
}

func (s *story) audit() []Violation { return Audit(s.entry, s.def, s.rows, s.open) }

func (s *story) String() string {
	text := fmt.Sprintf("%+v\n%s %+v\n", s.entry, s.sched, s.def)
	for _, r := range s.rows {
		text += r.show() + "\n"
	}
	for _, l := range s.open {
		text += l.show() + "\n"
	}
	return text
}
