package ledger

import (
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// twin is a slow copy of what the scripts of claims and ends do: the protocol of doc.go in plain Go,
// in memory, one item after another. It says how each call must be answered and what must then be
// stored. It knows definitions, triggers, claims with shards and overlap, renewals, ends, lapsed
// leases and hand-backs. It does not know pauses, followers, gates, promotions, moves, failovers and
// what operators do.
type twin struct {
	us      int64  // Redis' clock, µs
	runID   string // the server's, as far as a token compares it
	skew    int64
	keep    int
	keepFor int64

	jobs    map[string]*twinJob
	runs    map[string]*twinRun // leased
	waiting map[string]*twinRun // pending runs and open ticks
	cancels map[string]Cancel
	kept    map[string]string // outputs by run, payloads by "p:" and run
}

type twinJob struct {
	Entry
	text  []byte
	runID string // of the server that gave the last token
	rows  []twinRow
	steps []int64 // where the cursor stood before each of its steps
	first int     // the first step that the history still shows
}

type twinRow struct {
	Row
	step int // the last step of the cursor that the row records; -1 for none
}

type twinRun struct {
	Lease
	step int
	ends []jobs.Outcome // of an open tick: how its shards ended
	top  int            // the highest attempt of them
}

func newTwin(c Config) *twin {
	c = c.withDefaults()
	return &twin{skew: c.MaxSkew.Milliseconds(), keep: c.Keep, keepFor: c.KeepFor.Milliseconds(), jobs: map[string]*twinJob{},
		runs: map[string]*twinRun{}, waiting: map[string]*twinRun{}, cancels: map[string]Cancel{}, kept: map[string]string{}}
}

func (m *twin) ms() int64 { return m.us / 1000 }

// count counts ticks and runs by how they ended.
func (j *twinJob) count(o jobs.Outcome, n int64) { j.Counts[o] += n }

// move moves the cursor and returns the number of the step.
func (j *twinJob) move(to int64) int {
	j.steps = append(j.steps, j.Cursor)
	j.Cursor = to
	return len(j.steps) - 1
}

// row is the row of a run.
func (j *twinJob) row(run string) *twinRow {
	i := slices.IndexFunc(j.rows, func(row twinRow) bool { return row.Run == run && !row.Ranged })
	if i < 0 {
		return nil
	}
	return &j.rows[i]
}

func (j *twinJob) stale() Answer { return Answer{Verdict: Stale, Cursor: j.Cursor, Busy: j.Busy} }

func (j *twinJob) opened(id string) Answer {
	return Answer{Verdict: Opened, Cursor: j.Cursor, Detail: id}
}

// token is the next token of a job.
func (m *twin) token(j *twinJob) locking.Token {
	const guard = 60_000_000
	if j.runID == m.runID {
		j.Token = max(j.Token+1, m.us)
	} else {
		j.Token = max(j.Token+1_000_000, m.us+guard)
	}
	j.runID = m.runID
	return j.Token
}

// define creates a job, or replaces its definition from where its cursor stands.
func (m *twin) define(d Definition) Defined {
	j, word := m.jobs[d.Job], "replaced"
	switch {
	case j == nil:
		word = "created"
		j = &twinJob{text: d.Text, Entry: Entry{Job: d.Job, Cursor: d.Cursor, Digest: d.Digest, Revision: d.Revision, Counts: map[jobs.Outcome]int64{}}}
		m.jobs[d.Job] = j
	case j.Digest == d.Digest:
		word, j.Revision = "same", max(j.Revision, d.Revision)
	default:
		row := Row{Job: j.Job, Ranged: true, Prev: j.Cursor, Next: d.Cursor, At: m.ms(), Tick: j.Cursor, Outcome: jobs.OutcomeSuperseded,
			Reason: ReasonReplacedDef, Note: plain(d.Old)}
		if d.Count > 0 {
			row.Until, row.Count, j.Last = d.Until, d.Count, d.Until
			j.count(jobs.OutcomeSuperseded, d.Count)
		}
		if tail := m.changedBefore(j, d); tail != nil {
			tail.Next, tail.At, tail.step = d.Cursor, m.ms(), len(j.steps)
		} else {
			m.write(j, twinRow{row, len(j.steps)})
		}
		j.move(d.Cursor)
		j.Digest, j.Revision, j.text = d.Digest, d.Revision, d.Text
	}
	return Defined{Word: word, Cursor: j.Cursor, Digest: j.Digest, Revision: j.Revision, Text: []byte{}, Last: j.Last}
}

// changedBefore is the row of the last change of a definition, when no tick came due since: it leads to the new definition then.
func (m *twin) changedBefore(j *twinJob, d Definition) *twinRow {
	if len(j.rows) == 0 || d.Count > 0 || d.Cursor == 0 || j.Cursor == 0 {
		return nil
	}
	tail := &j.rows[len(j.rows)-1]
	stays := d.Same && tail.Prev == tail.Next && tail.Note == plain(d.Old)
	if tail.Reason != ReasonReplacedDef || tail.Count > 0 || tail.Prev == 0 || tail.Next != j.Cursor || !stays && tail.Prev <= m.ms() {
		return nil
	}
	return tail
}

func (m *twin) trigger(job string, t Trigger) (string, string) {
	j := m.jobs[job]
	if j == nil {
		return "", "unknown job"
	}
	same := func(run, request string) bool { return run == t.Run || request == t.Run }
	for _, set := range []map[string]*twinRun{m.runs, m.waiting} {
		for _, r := range set {
			if r.Job == job && same(r.Run, r.Request) {
				return t.Run, ""
			}
		}
	}
	if slices.ContainsFunc(j.rows, func(row twinRow) bool { return same(row.Run, row.Request) }) {
		return t.Run, ""
	}
	at := t.At
	if at == 0 {
		at = m.ms()
	}
	m.waiting[t.Run] = &twinRun{step: -1, Lease: Lease{Run: t.Run, Job: job, Tick: at, Shards: 1, Attempt: 1, Trigger: "manual",
		Request: t.Run, Granted: at, Payload: append([]byte{}, t.Payload...)}}
	return t.Run, ""
}

func (m *twin) claim(by Claimer, c Claim) Answer {
	j := m.jobs[c.Job]
	if j == nil {
		return Answer{Verdict: Unknown}
	}
	if again, ok := m.again(by, j, c); ok {
		return again
	}
	if j.Digest != c.Digest {
		return Answer{Verdict: Superseded, Detail: j.Digest}
	}
	if t := m.tickOf(c.Run); splits(c) && t != nil && t.Job == c.Job {
		return j.opened(c.Run)
	}
	if c.Pending {
		return m.claimPending(by, j, c)
	}
	return m.claimTick(by, j, c)
}

// again is the grant of a claim that was granted before, whatever has changed since.
func (m *twin) again(by Claimer, j *twinJob, c Claim) (Answer, bool) {
	r := m.runs[c.Run]
	if r == nil || r.Job != c.Job || r.Node != by.ID || j.Open != c.Run && c.Overlap != jobs.OverlapAllow && !c.Shard {
		return Answer{}, false
	}
	a := Answer{Verdict: Granted, Token: r.Token, Left: millisOf(max(0, r.Until-m.ms())), Run: Lease{Attempt: r.Attempt}}
	if c.Pending {
		a.Run = m.carried(r)
	}
	return a, true
}

func (m *twin) claimTick(by Claimer, j *twinJob, c Claim) Answer {
	if j.Cursor != c.From || j.Cursor == 0 {
		if t := m.tickOf(j.Open); t != nil && splits(c) && t.Tick == c.Tick {
			return j.opened(j.Open)
		}
		return j.stale()
	}
	switch m.fits(j, c) {
	case Stale:
		return j.stale()
	case Early:
		return Answer{Verdict: Early}
	case Held:
		m.replace(j, c.Overlap, m.ms())
		return Answer{Verdict: Held, Detail: j.Open}
	default: // it fits
	}
	last := c.Tick
	if last == 0 {
		last = c.Passes[len(c.Passes)-1].Last
	}
	due := c.Tick == 0 || c.Tick <= m.ms()
	if last > m.ms()+AheadMax.Milliseconds() || c.Tick == 0 && last > m.ms() || len(c.Passes) > 0 && c.Passes[len(c.Passes)-1].Last > m.ms() {
		return Answer{Verdict: Early}
	}
	held := c.Tick != 0 && c.Overlap != jobs.OverlapAllow && j.Open != ""
	if held && (!due || c.Overlap != jobs.OverlapSkip || !m.overlaps(j, last)) {
		if due {
			m.replace(j, c.Overlap, last)
		}
		return Answer{Verdict: Held, Detail: j.Open}
	}
	step := len(j.steps)
	for _, p := range c.Passes {
		m.passed(j, step, Row{Prev: p.First, Next: p.Next, Tick: p.First, Until: p.Last, Count: p.Count, Outcome: p.Outcome, Reason: p.Reason})
		step++
	}
	if held {
		m.passed(j, step, Row{Prev: c.Tick, Next: c.Next, Tick: c.Tick, Until: c.Tick, Count: 1, Outcome: jobs.OutcomeSkipped, Reason: ReasonOverlap})
	}
	for _, p := range c.Passes {
		j.move(p.Next)
	}
	if c.Tick != 0 {
		j.move(c.Next)
	}
	if j.Last = last; j.Cursor == 0 || j.Busy.To <= j.Cursor {
		j.Busy = Window{} // it lies behind the cursor
	}
	if j.Cursor != 0 && j.ReattemptUntil <= j.Cursor {
		j.ReattemptUntil, j.Reattempt = 0, 0
	}
	switch {
	case held:
		return Answer{Verdict: Skipped, Cursor: j.Cursor}
	case c.Tick == 0:
		return Answer{Verdict: Passed, Cursor: j.Cursor}
	}
	r := &twinRun{step: step, Lease: Lease{Job: c.Job, Tick: c.Tick, Shards: 1, Attempt: 1, Prev: c.Tick, Next: c.Next,
		Trigger: c.Trigger.String(), Payload: []byte{}}}
	if splits(c) {
		return m.openTick(j, c, r)
	}
	m.grant(by, j, c, r)
	return Answer{Verdict: Granted, Token: r.Token, Left: m.left(r), Run: Lease{Attempt: 1}}
}

// fits says whether a claim leads from the cursor on, one step after the other, and treats the ticks of
// the job's busy time as they must be: Granted or Moved; Held or Early for ticks that wait behind a run.
func (m *twin) fits(j *twinJob, c Claim) Verdict {
	waits := c.Overlap == jobs.OverlapQueue || c.Overlap == jobs.OverlapReplace
	var busy, going Window
	if waits && j.Busy.From != 0 {
		busy = Window{j.Busy.From, min(j.Busy.To, m.ms()+1)}
	}
	switch r := m.holder(j); {
	case !waits || j.Open == "":
	case busy.From != 0:
		going.From = busy.From
	case r != nil:
		going.From = r.Granted
	}
	at, overlap := c.From, false
	for _, p := range c.Passes {
		missed := p.Outcome == jobs.OutcomeMissed && p.Reason != ReasonStartWithin
		switch {
		case p.First != at, p.Last < p.First, p.Next != 0 && p.Next <= p.Last, p.Outcome == jobs.OutcomePaused:
			return Stale
		case missed && touches(going, p) && p.Last > m.ms():
			return Early
		case missed && touches(going, p):
			return Held
		case missed && touches(busy, p), p.Outcome == jobs.OutcomeSkipped && (c.Tick == 0 || !busy.Holds(p.First) || !busy.Holds(p.Last)):
			return Stale
		}
		at, overlap = p.Next, overlap || p.Outcome == jobs.OutcomeSkipped
	}
	switch {
	case c.Tick == 0 && (len(c.Passes) == 0 || c.Next != at),
		c.Tick != 0 && (c.Tick != at || c.Next != 0 && c.Next <= c.Tick),
		overlap && !busy.Holds(c.Tick),
		c.Tick != 0 && busy.Holds(c.Tick) && (c.Next != 0 && busy.Holds(c.Next) || c.Trigger == jobs.TriggerCatchUp):
		return Stale
	}
	return Granted
}

func touches(w Window, p SkippedRange) bool {
	return w.From != 0 && p.Last >= w.From && (w.To == 0 || p.First < w.To)
}

// holder is the run, or the open tick, that holds a job; nil when that waits to be granted.
func (m *twin) holder(j *twinJob) *twinRun {
	if r := m.runs[j.Open]; r != nil {
		return r
	}
	return m.tickOf(j.Open)
}

// overlaps says whether an instant lies in the time of the run that holds the job, which began when it
// was granted first.
func (m *twin) overlaps(j *twinJob, at int64) bool {
	if r := m.holder(j); r != nil {
		return r.Granted <= at
	}
	return j.Busy.From <= at
}

// replace asks for the end of the run that holds a job whose ticks replace it. The first wish stands.
func (m *twin) replace(j *twinJob, o jobs.Overlap, at int64) {
	if _, asked := m.cancels[j.Open]; o == jobs.OverlapReplace && m.holder(j) != nil && m.overlaps(j, at) && !asked {
		m.cancels[j.Open] = Cancel{Run: j.Open}
	}
}

func (m *twin) claimPending(by Claimer, j *twinJob, c Claim) Answer {
	r := m.waiting[c.Run]
	switch {
	case r == nil || r.Job != c.Job:
		return j.stale()
	case r.Whole:
		return j.opened(c.Run)
	case r.Granted > m.ms():
		return Answer{Verdict: Early}
	case r.Of != "":
		return m.claimShard(by, j, r, c)
	case c.Drop != "" && r.Prev != 0: // a run of the schedule that was handed back comes too late
		delete(m.waiting, c.Run)
		m.passed(j, r.step, Row{Prev: r.Prev, Next: r.Next, Tick: r.Tick, Until: r.Tick, Count: 1, Outcome: jobs.OutcomeMissed, Reason: c.Drop})
		if j.Open == c.Run {
			if j.Open = ""; j.Busy != (Window{}) {
				j.Busy.To = m.ms()
			}
		}
		return Answer{Verdict: Passed, Cursor: j.Cursor, Detail: jobs.OutcomeMissed.String() + "," + c.Drop}
	case c.Overlap != jobs.OverlapAllow && j.Open != "" && j.Open != c.Run:
		return Answer{Verdict: Held, Detail: j.Open}
	}
	delete(m.waiting, c.Run)
	if splits(c) && r.Shards == 1 && !(r.Holds && r.Attempt > 1) { // else it has begun as a whole
		return m.openTick(j, c, r)
	}
	m.grant(by, j, c, r)
	a := Answer{Verdict: Granted, Token: r.Token, Left: m.left(r), Run: r.Lease}
	a.Run.Run = ""
	return a
}

// first is how long a lease of that ttl lasts until it is renewed.
func (m *twin) first(ttl time.Duration) time.Duration {
	return min(ttl, max(5*time.Second, millisOf(3*m.skew)))
}

// left is how long a lease lasts that was granted now.
func (m *twin) left(r *twinRun) time.Duration { return millisOf(r.Until - m.ms()) }

// grant leases a run, with the next token of its job, which it holds unless its runs may overlap.
func (m *twin) grant(by Claimer, j *twinJob, c Claim, r *twinRun) {
	switch {
	case r.Of == "":
		j.hold(c, c.Run)
	case j.Open == "" && c.Overlap != jobs.OverlapAllow: // the tick was opened beside others
		j.hold(c, r.Of)
	}
	ttl := c.TTL.Milliseconds()
	r.Run, r.Token, r.Node, r.NodeName, r.TTL, r.Until, r.Granted = c.Run, m.token(j), by.ID, by.Name, ttl, max(m.ms(), r.Tick)+m.first(c.TTL).Milliseconds(), m.ms()
	r.Overlap, r.Attempts, r.Holds = mode(c.Overlap), max(1, c.Attempts), false
	m.runs[c.Run] = r
}

// hold makes what is granted, or opened, hold the job, unless its runs may overlap.
func (j *twinJob) hold(c Claim, id string) {
	switch {
	case c.Overlap == jobs.OverlapAllow && j.Open == id:
		j.Open = ""
	case c.Overlap != jobs.OverlapAllow && j.Open != id:
		j.Open, j.Busy = id, Window{}
	}
}

// splits says whether a claim is one of a job with shards, and not of a shard.
func splits(c Claim) bool { return c.Shards > 1 && !c.Shard }

// tickOf is the open tick of that id; nil when there is none.
func (m *twin) tickOf(id string) *twinRun {
	if t := m.waiting[id]; t != nil && t.Whole {
		return t
	}
	return nil
}

// openTick opens a tick in the place of the run that p would be.
func (m *twin) openTick(j *twinJob, c Claim, p *twinRun) Answer {
	m.waiting[c.Run] = &twinRun{step: p.step, Lease: Lease{Run: c.Run, Whole: true, Job: j.Job, Tick: p.Tick, Shards: c.Shards, Left: c.Shards,
		Attempt: p.Attempt, Prev: p.Prev, Next: p.Next, Trigger: p.Trigger, Request: p.Request, Granted: m.ms(), Overlap: mode(c.Overlap), Payload: p.Payload}}
	for i := range c.Shards {
		l := Lease{Run: ShardRun(c.Run, i), Job: j.Job, Tick: p.Tick, Shard: i, Shards: c.Shards, Attempt: p.Attempt, Trigger: p.Trigger,
			Request: p.Request, Granted: m.ms(), Of: c.Run, Payload: []byte{}}
		if i < len(c.Params) {
			l.Param = c.Params[i]
		}
		m.waiting[l.Run] = &twinRun{step: -1, Lease: l}
	}
	j.hold(c, c.Run)
	return j.opened(c.Run)
}

// claimShard grants a shard of an open tick, or records that it is not to run any more.
func (m *twin) claimShard(by Claimer, j *twinJob, r *twinRun, c Claim) Answer {
	switch {
	case c.Overlap != jobs.OverlapAllow && j.Open != "" && j.Open != r.Of:
		return Answer{Verdict: Held, Detail: j.Open}
	case m.wanted(r):
		delete(m.waiting, r.Run)
		r.Token, r.Node, r.NodeName = 0, "", ""
		m.close(j, r, Row{At: m.ms(), Outcome: jobs.OutcomeCancelled, Reason: ReasonReplaced, Started: m.ms()})
		m.part(j, r, jobs.OutcomeCancelled, m.ms())
		return Answer{Verdict: Passed, Cursor: j.Cursor, Detail: "cancelled," + ReasonReplaced}
	}
	delete(m.waiting, r.Run)
	m.grant(by, j, c, r)
	return Answer{Verdict: Granted, Token: r.Token, Left: m.left(r), Run: m.carried(r)}
}

// carried is a run as its node gets it: a shard with its tick's payload.
func (m *twin) carried(r *twinRun) Lease {
	l := r.Lease
	l.Run = ""
	if t := m.tickOf(r.Of); t != nil {
		l.Payload = t.Payload
	}
	return l
}
