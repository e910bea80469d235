package model

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// Claim answers "may I run this?".
func (m *Ledger) Claim(by claim.Claimer, c claim.Claim) claim.Answer {
	j := m.jobs[c.Job]
	if j == nil {
		return claim.Answer{Verdict: claim.Unknown}
	}
	if granted, yes := m.repeated(by, j, c); yes {
		return granted
	}
	if j.Digest != c.Digest && m.on(DigestCompare) {
		return claim.Answer{Verdict: claim.Superseded, Detail: j.Digest}
	}
	if splits(c) && j.tick(c.Run) != nil {
		return j.opened(c.Run)
	}
	if c.Pending {
		return m.claimPending(by, j, c)
	}
	return m.claimTick(by, j, c)
}

// repeated is the grant of a claim that was granted before, whatever has changed since.
func (m *Ledger) repeated(by claim.Claimer, j *job, c claim.Claim) (claim.Answer, bool) {
	r := j.leased(c.Run)
	if r == nil || r.Node != by.ID && m.on(SameAsker) || j.HolderRun != c.Run && c.Overlap != jobs.OverlapAllow && !c.Shard {
		return claim.Answer{}, false
	}
	a := claim.Answer{Verdict: claim.Granted, Token: r.Token, Left: millis(max(0, r.Until-m.ms())), Run: ledger.Run{Attempt: r.Attempt}}
	if c.Pending {
		a.Run = j.carried(r)
	}
	return a, true
}

func (j *job) stale() claim.Answer {
	return claim.Answer{Verdict: claim.Stale, Cursor: j.Cursor, Busy: j.Busy}
}

func (j *job) opened(id string) claim.Answer {
	return claim.Answer{Verdict: claim.Opened, Cursor: j.Cursor, Detail: id}
}

func (j *job) held() claim.Answer {
	return claim.Answer{Verdict: claim.JobBusy, Detail: j.HolderRun}
}

// claimTick moves the cursor over ticks that will not run, and over the tick, which is granted,
// opened or recorded as skipped.
func (m *Ledger) claimTick(by claim.Claimer, j *job, c claim.Claim) claim.Answer {
	if (j.Cursor != c.From || j.Cursor == 0) && m.on(CursorCompare) {
		if t := j.tick(j.HolderRun); t != nil && splits(c) && t.Tick == c.Tick {
			return j.opened(j.HolderRun)
		}
		return j.stale()
	}
	switch m.fits(j, c) {
	case claim.Stale:
		return j.stale()
	case claim.Early:
		return claim.Answer{Verdict: claim.Early}
	case claim.JobBusy:
		m.replace(j, c.Overlap, m.ms())
		return j.held()
	default: // it fits
	}
	last := c.Tick
	if last == 0 {
		last = c.Skipped[len(c.Skipped)-1].Last
	}
	if m.early(c, last) && m.on(NotEarly) {
		return claim.Answer{Verdict: claim.Early}
	}
	due, held := c.Tick <= m.ms(), c.Tick != 0 && c.Overlap != jobs.OverlapAllow && j.HolderRun != ""
	if held && (!due || c.Overlap != jobs.OverlapSkip || !m.overlaps(j, last)) {
		if due {
			m.replace(j, c.Overlap, last)
		}
		return j.held()
	}
	m.pass(j, c, held, last)
	switch {
	case held:
		return claim.Answer{Verdict: claim.Skipped, Cursor: j.Cursor}
	case c.Tick == 0:
		return claim.Answer{Verdict: claim.RecordedOnly, Cursor: j.Cursor}
	}
	r := &run{step: len(j.steps) - 1, Run: ledger.Run{
		Job: c.Job, Tick: c.Tick, Shards: 1, Attempt: 1, Prev: c.Tick, Next: c.Next, Trigger: c.Trigger.String(), Payload: []byte{},
	}}
	if splits(c) {
		return m.openTick(j, c, r)
	}
	m.grant(by, j, c, r)
	return claim.Answer{Verdict: claim.Granted, Token: r.Token, Left: millis(r.Until - m.ms()), Run: ledger.Run{Attempt: 1}}
}

// early reports whether a tick is not to be granted yet, or ticks are not to be passed yet.
func (m *Ledger) early(c claim.Claim, last int64) bool {
	passes := len(c.Skipped) > 0 && c.Skipped[len(c.Skipped)-1].Last > m.ms()
	return last > m.ms()+m.ahead || c.Tick == 0 && last > m.ms() || passes
}

// pass records the ticks of a claim that will not run, and moves the cursor.
func (m *Ledger) pass(j *job, c claim.Claim, held bool, last int64) {
	step := len(j.steps)
	for _, p := range c.Skipped {
		m.skip(j, step, ledger.Row{Prev: p.First, Next: p.Next, Tick: p.First, Until: p.Last, Count: p.Count, Outcome: p.Outcome, Reason: p.Reason})
		step++
	}
	if held {
		m.skip(j, step, ledger.Row{Prev: c.Tick, Next: c.Next, Tick: c.Tick, Until: c.Tick, Count: 1, Outcome: jobs.OutcomeSkipped, Reason: ledger.ReasonOverlap})
	}
	for _, p := range c.Skipped {
		j.move(p.Next)
	}
	if c.Tick != 0 {
		j.move(c.Next)
	}
	if j.Last = last; j.Cursor == 0 || j.Busy.To <= j.Cursor {
		j.Busy = ledger.Window{} // it lies behind the cursor
	}
	if j.Cursor != 0 && j.ReattemptUntil <= j.Cursor {
		j.ReattemptUntil, j.Reattempt = 0, 0
	}
}

// fits reports whether a claim leads from the cursor on, one step after the other, and treats the
// ticks of the job's busy time as they must be: Granted or Stale; JobBusy or Early for ticks that wait
// behind a run.
func (m *Ledger) fits(j *job, c claim.Claim) claim.Verdict {
	waits := c.Overlap == jobs.OverlapQueue || c.Overlap == jobs.OverlapReplace
	var busy, going ledger.Window
	if waits && j.Busy.From != 0 {
		busy = ledger.Window{From: j.Busy.From, To: min(j.Busy.To, m.ms()+1)}
	}
	switch r := j.holder(); {
	case !waits || j.HolderRun == "":
	case busy.From != 0:
		going.From = busy.From
	case r != nil:
		going.From = r.Granted
	}
	at, overlap := c.From, false
	for _, p := range c.Skipped {
		missed := p.Outcome == jobs.OutcomeMissed && p.Reason != ledger.ReasonStartWithin
		switch {
		case p.First != at, p.Last < p.First, p.Next != 0 && p.Next <= p.Last, p.Outcome == jobs.OutcomePaused:
			return claim.Stale
		case missed && touches(going, p) && p.Last > m.ms():
			return claim.Early
		case missed && touches(going, p):
			return claim.JobBusy
		case missed && touches(busy, p), p.Outcome == jobs.OutcomeSkipped && (c.Tick == 0 || !busy.Holds(p.First) || !busy.Holds(p.Last)):
			return claim.Stale
		}
		at, overlap = p.Next, overlap || p.Outcome == jobs.OutcomeSkipped
	}
	switch {
	case c.Tick == 0 && (len(c.Skipped) == 0 || c.Next != at),
		c.Tick != 0 && (c.Tick != at || c.Next != 0 && c.Next <= c.Tick),
		overlap && !busy.Holds(c.Tick),
		c.Tick != 0 && busy.Holds(c.Tick) && (c.Next != 0 && busy.Holds(c.Next) || c.Trigger == jobs.TriggerCatchUp):
		return claim.Stale
	}
	return claim.Granted
}

func touches(w ledger.Window, p ledger.SkippedRange) bool {
	return w.From != 0 && p.Last >= w.From && (w.To == 0 || p.First < w.To)
}

// overlaps reports whether an instant lies in the time of the run that holds the job. That time
// begins with the run's first grant.
func (m *Ledger) overlaps(j *job, at int64) bool {
	if !m.on(HeldNotSkipped) {
		return true
	}
	if r := j.holder(); r != nil {
		return r.Granted <= at
	}
	return j.Busy.From <= at
}

// replace stores a request to end the run that holds the job, if the job's ticks replace runs. The
// first request is kept.
func (m *Ledger) replace(j *job, o jobs.Overlap, at int64) {
	if _, asked := m.cancels[j.HolderRun]; o == jobs.OverlapReplace && j.holder() != nil && m.overlaps(j, at) && !asked {
		m.cancels[j.HolderRun] = ledger.Cancel{Run: j.HolderRun}
	}
}

// grant leases a run with the next token of its job. The run holds the job unless runs may overlap.
func (m *Ledger) grant(by claim.Claimer, j *job, c claim.Claim, r *run) {
	switch {
	case r.TickID == "":
		j.hold(c, c.Run)
	case j.HolderRun == "" && c.Overlap != jobs.OverlapAllow: // the tick was opened beside another run
		j.hold(c, r.TickID)
	}
	r.ID, r.Token, r.Node, r.NodeName, r.TTL, r.Granted = c.Run, m.token(j), by.ID, by.Name, c.TTL.Milliseconds(), m.ms()
	r.Until = max(m.ms(), r.Tick) + min(r.TTL, max(5000, 3*m.skew))
	r.Overlap, r.Attempts, r.ReservesJob = mode(c), max(1, c.Attempts), false
	j.runs = append(j.runs, r)
}

// hold makes a run or an open tick hold the job, unless runs may overlap.
func (j *job) hold(c claim.Claim, id string) {
	switch {
	case c.Overlap == jobs.OverlapAllow && j.HolderRun == id:
		j.HolderRun = ""
	case c.Overlap != jobs.OverlapAllow && j.HolderRun != id:
		j.HolderRun, j.Busy = id, ledger.Window{}
	}
}

// splits reports whether a claim is one of a job with shards, and not of a shard.
func splits(c claim.Claim) bool { return c.Shards > 1 && !c.Shard }

// mode is the first letter of an overlap policy, as it is stored.
func mode(c claim.Claim) string { return c.Overlap.String()[:1] }

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
