package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

func (m *twin) settle(rep Report) Status {
	r, j := m.runs[rep.Run], m.jobs[rep.Job]
	switch {
	case r == nil && (j == nil || j.row(rep.Run) == nil):
		return NoSuchRun
	case r == nil: // it has ended: its row answers
		row := j.row(rep.Run)
		if row.Outcome == rep.Outcome {
			return Settled
		}
		if row.Late == "" {
			row.Late = fmt.Sprintf("%s %d", rep.Outcome, rep.Ended)
		}
		return Lost
	case rep.Token != 0 && rep.Token != r.Token:
		return Lost
	}
	fresh := ""
	if rep.Rerun && rep.Outcome != jobs.OutcomeSucceeded {
		fresh = Successor(rep.Run)
	}
	m.end(r, Row{At: rep.Ended, Outcome: rep.Outcome, Reason: plain(rep.Reason), Started: rep.Started, Tries: rep.Tries, Error: rep.Error},
		string(rep.Output), fresh, m.ms())
	return Settled
}

func (m *twin) renew(r locking.Renewal) locking.RenewAnswer {
	run := m.runs[r.Owner]
	if run == nil || r.Token != 0 && r.Token != run.Token {
		return locking.Gone
	}
	run.Until = m.ms() + r.TTL.Milliseconds()
	run.Beat++
	return locking.Renewed
}

func (m *twin) reap(seen Lease) Status {
	r := m.runs[seen.Run]
	if r != nil && r.Until > m.ms()+r.TTL+AheadMax.Milliseconds() {
		r.Until = m.ms() + r.TTL
	}
	switch {
	case r == nil:
		return Gone
	case r.Beat != seen.Beat || r.Until >= m.ms():
		return Alive
	}
	freed := r.Until
	if r.Of != "" {
		freed = m.ms()
	}
	m.end(r, Row{At: m.ms(), Outcome: jobs.OutcomeAbandoned, Reason: ReasonLapsed, Started: r.Granted}, "", Successor(r.Run), freed)
	return Reaped
}

func (m *twin) unclaim(back Return) Status {
	r, fresh := m.runs[back.Run], Successor(back.Run)
	switch {
	case r == nil && m.waiting[fresh] != nil && (m.jobs[back.Job] == nil || m.jobs[back.Job].row(back.Run) == nil):
		return Returned
	case r == nil, back.Token != 0 && back.Token != r.Token:
		return Lost
	}
	if m.wanted(r) {
		m.end(r, Row{At: m.ms(), Outcome: jobs.OutcomeCancelled, Reason: ReasonReplaced, Started: r.Granted}, "", "", m.ms())
		return Returned
	}
	delete(m.runs, back.Run)
	if j := m.jobs[back.Job]; j.Open == back.Run {
		j.free(r, m.ms(), fresh)
	}
	next := m.successor(r, r.Attempt)
	next.Prev, next.Next, next.Trigger, next.step = r.Prev, r.Next, r.Trigger, r.step
	return Returned
}

// successor puts what follows upon a run among those that wait.
func (m *twin) successor(r *twinRun, attempt int) *twinRun {
	next := &twinRun{step: -1, Lease: Lease{Run: Successor(r.Run), Job: r.Job, Tick: r.Tick, Shard: r.Shard, Shards: r.Shards, Attempt: attempt,
		Trigger: "rerun", Request: r.Request, Granted: m.ms(), Holds: true, Of: r.Of, Param: r.Param, Payload: r.Payload}}
	m.waiting[next.Run] = next
	return next
}

// end takes a run out of flight and writes its row; how says what the run itself does not know. With
// fresh, the next attempt follows if there may be one.
func (m *twin) end(r *twinRun, how Row, output, fresh string, freed int64) {
	j := m.jobs[r.Job]
	if m.wanted(r) || r.Attempt >= r.Attempts {
		fresh = ""
	}
	delete(m.runs, r.Run)
	m.close(j, r, how)
	if j.Open == r.Run {
		j.free(r, freed, fresh)
	}
	if output != "" {
		m.kept[r.Run] = output
	}
	if fresh != "" {
		m.successor(r, r.Attempt+1)
	} else if r.Of != "" {
		m.part(j, r, how.Outcome, freed)
	}
	delete(m.cancels, r.Run)
}

// close writes the row of a run, leased or pending, and what is kept beside it.
func (m *twin) close(j *twinJob, r *twinRun, how Row) {
	how.Job, how.Prev, how.Next, how.Tick, how.Shard, how.Shards, how.Attempt = r.Job, r.Prev, r.Next, r.Tick, r.Shard, r.Shards, r.Attempt
	how.Run, how.Token, how.Node, how.NodeName, how.Trigger, how.Request = r.Run, r.Token, r.Node, r.NodeName, r.Trigger, r.Request
	how.Of, how.Param = r.Of, r.Param
	m.write(j, twinRow{how, r.step})
	j.count(how.Outcome, 1)
	if len(r.Payload) > 0 {
		m.kept["p:"+r.Run] = string(r.Payload)
	}
}

// wanted says whether a tick asks for the end of a run, or of the open tick that the run is a shard of.
func (m *twin) wanted(r *twinRun) bool {
	_, own := m.cancels[r.Run]
	_, all := m.cancels[r.Of]
	return own || all
}

// fromBest are the outcomes of a shard from the best to the worst.
var fromBest = []jobs.Outcome{0, jobs.OutcomeSucceeded, jobs.OutcomeCancelled, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeLost,
	jobs.OutcomeAbandoned}

// part takes note of the end of a shard, and closes the tick with the last one.
func (m *twin) part(j *twinJob, r *twinRun, how jobs.Outcome, freed int64) {
	id, t := r.Of, m.tickOf(r.Of)
	t.ends, t.top = append(t.ends, how), max(t.top, t.Attempt, r.Attempt)
	if t.Left--; t.Left > 0 {
		return
	}
	worst, reason, good := fromBest[0], "", 0
	for _, o := range t.ends {
		if slices.Index(fromBest, o) > slices.Index(fromBest, worst) {
			worst = o
		}
		if o == jobs.OutcomeSucceeded {
			good++
		}
	}
	if bad := t.Shards - good; bad > 0 {
		reason = fmt.Sprintf("%d of %d shards did not succeed", bad, t.Shards)
	}
	delete(m.waiting, id)
	delete(m.cancels, id)
	m.write(j, twinRow{step: t.step, Row: Row{Job: j.Job, Whole: true, Prev: t.Prev, Next: t.Next, At: m.ms(), Tick: t.Tick, Shards: t.Shards,
		Attempt: t.Attempt, Highest: t.top, Run: id, Trigger: t.Trigger, Request: t.Request, Outcome: worst, Reason: reason, Started: t.Granted}})
	if len(t.Payload) > 0 {
		m.kept["p:"+id] = string(t.Payload)
	}
	if j.Open == id {
		j.free(t, freed, "")
	}
}

// free lets go of the job, or hands it on to the next attempt, and notes the busy time that ended.
func (j *twinJob) free(r *twinRun, freed int64, fresh string) {
	switch j.Open = fresh; {
	case r.Overlap == "s" && fresh == "":
		j.Busy = Window{}
	case r.Overlap != "a":
		if j.Busy.To = freed; j.Busy.From == 0 {
			j.Busy.From = r.Granted
		}
	}
}

// passed records ticks that did not run, in the last row if that says the same of those before.
func (m *twin) passed(j *twinJob, step int, row Row) {
	j.count(row.Outcome, row.Count)
	if n := len(j.rows); n > 0 {
		tail := &j.rows[n-1]
		if tail.Ranged && tail.Next == row.Tick && tail.Prev != 0 && tail.Outcome == row.Outcome && tail.Reason == row.Reason {
			tail.Next, tail.Until, tail.At, tail.step = row.Next, row.Until, m.ms(), step
			tail.Count += row.Count
			return
		}
	}
	row.Job, row.Ranged, row.At = j.Job, true, m.ms()
	m.write(j, twinRow{row, step})
}

// write appends a row and trims: at every 16th, up to 32 also when the first is too old, at most 64, never the newest.
func (m *twin) write(j *twinJob, row twinRow) {
	j.rows = append(j.rows, row)
	if n := len(j.rows); n%16 != 0 && (n > 32 || j.rows[0].At >= m.ms()-m.keepFor) {
		return
	}
	won := int64(0)
	defer func() { j.Won = max(j.Won, won) }()
	for dropped := 0; dropped < 64 && len(j.rows) > 1; dropped++ {
		old, ranges := j.rows[0], 0
		for _, r := range j.rows {
			if r.Ranged {
				ranges++
			}
		}
		if len(j.rows)-ranges <= m.keep && ranges <= 4*m.keep && old.At >= m.ms()-m.keepFor {
			return
		}
		if old.Outcome == jobs.OutcomeSucceeded && (old.Whole || old.Shards < 2) {
			won = old.At // the last one of those that leave
		}
		j.first, j.rows = max(j.first, old.step+1), j.rows[1:]
		delete(m.kept, old.Run)
		delete(m.kept, "p:"+old.Run)
		if !old.Ranged && old.Prev == 0 && old.Request == "" && j.Cursor == 0 { // a schedule that ended keeps the number of the next attempt
			j.ReattemptUntil, j.Reattempt = max(j.ReattemptUntil, old.Tick+1), max(j.Reattempt, old.Attempt+1)
		}
	}
}

// stored is what Jobs must read, by name.
func (m *twin) stored() []Stored {
	var all []Stored
	for _, j := range m.jobs {
		e := j.Entry
		if e.Base = j.Cursor; j.first < len(j.steps) {
			e.Base = j.steps[j.first]
		}
		all = append(all, Stored{Entry: e, Definition: j.text})
	}
	slices.SortFunc(all, func(a, b Stored) int { return cmp.Compare(a.Job, b.Job) })
	return all
}

// open is what Open must read, by run.
func (m *twin) open() []Lease {
	var all []Lease
	for _, set := range []map[string]*twinRun{m.runs, m.waiting} {
		for _, r := range set {
			all = append(all, r.Lease)
		}
	}
	slices.SortFunc(all, func(a, b Lease) int { return cmp.Compare(a.Run, b.Run) })
	return all
}

// history is what History must read of one job.
func (m *twin) history(job string) (rows []Row) {
	if j := m.jobs[job]; j != nil {
		for _, row := range j.rows {
			rows = append(rows, row.Row)
		}
	}
	return rows
}
