package ledger

import (
	"slices"

	"github.com/escapement/escapement/jobs"
)

func (m *model) claim(by Claimer, c Claim) Answer {
	j, why := m.job(c.Job)
	if again, ok := m.again(by, j, c); ok {
		return again
	}
	shut := m.shut(c.Job)
	switch {
	case shut != nil:
		return Answer{Verdict: Closed, Detail: shut.Error()}
	case why == "foreign":
		return Answer{Verdict: Foreign}
	case j == nil:
		return Answer{Verdict: Unknown}
	}
	if j.Digest != c.Digest {
		return Answer{Verdict: Superseded, Detail: j.Digest}
	}
	if t := m.tickOf(c.Run); c.splits() && t != nil && t.Job == c.Job {
		return j.opened(c.Run)
	}
	if c.Pending {
		return m.claimPending(by, j, c)
	}
	return m.claimTick(by, j, c)
}

// again is the grant of a claim that was granted before: it is found whatever has changed since.
func (m *model) again(by Claimer, j *modelJob, c Claim) (Answer, bool) {
	r := m.runs[c.Run]
	if j == nil || r == nil || m.foreign["run "+c.Run] || r.Job != c.Job || r.Node != by.ID ||
		j.Open != c.Run && c.Overlap != jobs.OverlapAllow && !c.Shard {
		return Answer{}, false
	}
	a := Answer{Verdict: Granted, Token: r.Token, Left: millisOf(max(0, r.Until-m.ms())), Run: Lease{Attempt: r.Attempt}}
	if c.Pending {
		a.Run = m.carried(r)
	}
	return a, true
}

func (j *modelJob) moved() Answer {
	return Answer{Verdict: Moved, Cursor: j.Cursor, Pause: j.Pause, Busy: j.Busy}
}

func (m *model) claimTick(by Claimer, j *modelJob, c Claim) Answer {
	if j.Cursor != c.From || j.Cursor == 0 {
		if t := m.tickOf(j.Open); t != nil && c.splits() && t.Tick == c.Tick {
			return j.opened(j.Open)
		}
		return j.moved()
	}
	v := m.fits(j, c)
	if v == Moved {
		return j.moved()
	}
	if v == Early {
		return Answer{Verdict: Early}
	}
	if v == Held {
		m.replace(j, c.Overlap, m.ms())
		return Answer{Verdict: Held, Detail: j.Open}
	}
	last := c.Tick
	if last == 0 {
		last = c.Passes[len(c.Passes)-1].Last
	}
	if last > m.ms() {
		return Answer{Verdict: Early}
	}
	held := c.Tick != 0 && c.Overlap != jobs.OverlapAllow && j.Open != ""
	if held && (c.Overlap != jobs.OverlapSkip || !m.overlaps(j, last)) {
		m.replace(j, c.Overlap, last)
		return Answer{Verdict: Held, Detail: j.Open}
	}
	attempt := j.next(last)
	if attempt != 1 && j.row(c.Run) != nil {
		return j.moved() // it ended before the cursor was set back
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
	j.Last, m.due[j.Job] = last, j.Cursor
	j.shed(m.ms())
	switch {
	case held:
		return Answer{Verdict: Skipped, Cursor: j.Cursor}
	case c.Tick == 0:
		return Answer{Verdict: Passed, Cursor: j.Cursor}
	}
	r := &modelRun{step: step, Lease: Lease{Job: c.Job, Tick: c.Tick, Shards: 1, Attempt: attempt, Prev: c.Tick, Next: c.Next,
		Trigger: c.Trigger.String(), Payload: []byte{}}}
	if c.splits() {
		return m.openTick(j, c, r)
	}
	m.grant(by, j, c, r)
	return Answer{Verdict: Granted, Token: r.Token, Left: c.TTL, Run: Lease{Attempt: attempt}}
}

// fits says whether a claim leads from the cursor on, one after the other, and treats the ticks of the
// job's windows as they must be: Granted, Moved, or Held and Early for ticks that are behind a run which
// is going, and so not missed.
func (m *model) fits(j *modelJob, c Claim) Verdict {
	waits := c.Overlap == jobs.OverlapQueue || c.Overlap == jobs.OverlapReplace
	var busy, going Window
	if waits {
		busy = j.Busy
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
		case p.First != at || p.Last < p.First || p.Next != 0 && p.Next <= p.Last,
			p.Outcome == jobs.OutcomePaused && (!j.Pause.Holds(p.First) || !j.Pause.Holds(p.Last)),
			p.Outcome != jobs.OutcomePaused && j.Pause.touches(p.First, p.Last):
			return Moved
		case missed && going.touches(p.First, p.Last) && p.Last > m.ms():
			return Early
		case missed && going.touches(p.First, p.Last):
			return Held
		case missed && busy.touches(p.First, p.Last),
			p.Outcome == jobs.OutcomeSkipped && (c.Tick == 0 || !busy.Holds(p.First) || !busy.Holds(p.Last)):
			return Moved
		}
		at, overlap = p.Next, overlap || p.Outcome == jobs.OutcomeSkipped
	}
	newer := c.Next != 0 && busy.Holds(c.Next) && !j.Pause.Holds(c.Next)
	switch {
	case c.Tick == 0 && (len(c.Passes) == 0 || c.Next != at),
		c.Tick != 0 && (c.Tick != at || c.Next != 0 && c.Next <= c.Tick || j.Pause.Holds(c.Tick)),
		overlap && !busy.Holds(c.Tick),
		c.Tick != 0 && busy.Holds(c.Tick) && (newer || c.Trigger == jobs.TriggerCatchUp):
		return Moved
	}
	return Granted
}

func (w Window) touches(first, last int64) bool {
	return w.From != 0 && last >= w.From && (w.To == 0 || first < w.To)
}

// overlaps says whether something came due while the run was going that holds the job; if that waits, since
// it was granted first.
func (m *model) overlaps(j *modelJob, at int64) bool {
	if r := m.holder(j); r != nil {
		return r.Granted <= at
	}
	return j.Busy.From <= at
}

// holder is the run that is going, or the open tick, that holds a job; nil when that waits or cannot be read.
func (m *model) holder(j *modelJob) *modelRun {
	if r := m.runs[j.Open]; r != nil && !m.foreign["run "+j.Open] {
		return r
	}
	return m.tickOf(j.Open)
}

// replace asks for the end of the run that holds a job, if the job is one whose ticks replace it.
func (m *model) replace(j *modelJob, o jobs.Overlap, at int64) {
	if o == jobs.OverlapReplace && (m.runs[j.Open] != nil || m.tickOf(j.Open) != nil) && m.overlaps(j, at) {
		m.wish(j.Open, "", "")
	}
}

// wish asks for the end of a run; the first wish stands.
func (m *model) wish(run, author, reason string) {
	if _, asked := m.cancels[run]; !asked {
		m.cancels[run] = Cancel{Run: run, Author: author, Reason: reason}
	}
}

func (m *model) claimPending(by Claimer, j *modelJob, c Claim) Answer {
	r := m.waiting[c.Run]
	switch {
	case r == nil || m.place(r.Job) != m.place(c.Job):
		return j.moved()
	case m.foreign["pending "+c.Run]:
		return Answer{Verdict: Foreign}
	case r.Job != c.Job:
		return j.moved()
	case r.Whole:
		return j.opened(c.Run)
	case r.Granted > m.ms():
		return Answer{Verdict: Early}
	case r.Of != "":
		return m.claimShard(by, j, r, c)
	}
	outcome, reason := m.instead(j, r, c)
	if outcome == jobs.OutcomeRunning {
		return Answer{Verdict: Held, Detail: reason}
	}
	delete(m.waiting, c.Run)
	if outcome != 0 {
		m.passed(j, r.step, Row{Prev: r.Prev, Next: r.Next, Tick: r.Tick, Until: r.Tick, Count: 1, Outcome: outcome, Reason: reason})
		if j.Open == c.Run {
			j.letGo(m.ms())
		}
		return Answer{Verdict: Passed, Cursor: j.Cursor, Detail: outcome.String() + "," + reason}
	}
	if c.splits() && r.Shards == 1 {
		return m.openTick(j, c, r)
	}
	m.grant(by, j, c, r)
	a := Answer{Verdict: Granted, Token: r.Token, Left: c.TTL, Run: r.Lease}
	a.Run.Run = ""
	return a
}

// instead is what a pending run is recorded as instead of being run; running, with a word, when it has
// to wait; nothing when it may run.
func (m *model) instead(j *modelJob, r *modelRun, c Claim) (jobs.Outcome, string) {
	own := r.Request == "" // not by hand
	after := r.Trigger == jobs.TriggerAfter.String() && !r.Holds
	switch {
	case c.Drop != "" && (after || r.Trigger != jobs.TriggerAfter.String() && r.Prev != 0):
		return jobs.OutcomeMissed, c.Drop
	case own && j.paused(m.ms()) && r.Holds:
		return jobs.OutcomeRunning, "a pause"
	case own && j.paused(m.ms()) && after:
		return jobs.OutcomePaused, ReasonPaused
	case c.Overlap == jobs.OverlapAllow || j.Open == "" || j.Open == c.Run:
		return 0, ""
	case after && m.overlaps(j, r.Granted) && c.Overlap == jobs.OverlapSkip:
		return jobs.OutcomeSkipped, ReasonOverlap
	case after:
		m.replace(j, c.Overlap, r.Granted)
	}
	return jobs.OutcomeRunning, j.Open
}

// paused says whether the job is paused now; its clock may have stepped back since it was.
func (j *modelJob) paused(ms int64) bool {
	return j.Pause.From != 0 && (j.Pause.To == 0 || ms < j.Pause.To)
}

// grant leases a run, with the next token of its job, which it holds unless its runs may overlap.
func (m *model) grant(by Claimer, j *modelJob, c Claim, r *modelRun) {
	switch {
	case r.Of == "":
		m.hold(j, c, c.Run)
	case j.Open == "" && c.Overlap != jobs.OverlapAllow: // the tick was opened beside others
		m.hold(j, c, r.Of)
	}
	ttl := c.TTL.Milliseconds()
	r.Run, r.Token, r.Node, r.NodeName, r.TTL, r.Until, r.Granted = c.Run, m.token(j), by.ID, by.Name, ttl, m.ms()+ttl, m.ms()
	r.Overlap, r.Attempts, r.Holds = c.Overlap.String()[:1], max(1, c.Attempts), false
	m.runs[c.Run] = r
}

// row is the row of a run.
func (j *modelJob) row(run string) *modelRow {
	i := slices.IndexFunc(j.rows, func(row modelRow) bool { return row.Run == run && !row.Ranged && !row.foreign })
	if i < 0 {
		return nil
	}
	return &j.rows[i]
}
