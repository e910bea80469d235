package model

import (
	"fmt"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// Settle ends a run by its node's report.
func (m *Ledger) Settle(rep settle.Report) ledger.Status {
	j := m.jobs[rep.Job]
	if j == nil {
		return ledger.NoSuchRun
	}
	r := j.leased(rep.Run)
	if i := slices.IndexFunc(j.runs, func(r *run) bool { return r.Token != 0 }); r == nil && i >= 0 && !m.on(OwnerInSettle) {
		r = j.runs[i]
	}
	switch {
	case r == nil:
		return j.settled(rep)
	case rep.Token != 0 && rep.Token != r.Token:
		return ledger.Lost
	}
	next := ""
	if rep.Rerun && rep.Outcome != jobs.OutcomeSucceeded {
		next = m.next(rep.Run)
	}
	m.end(j, r, ledger.Row{At: rep.Ended, Outcome: rep.Outcome, Reason: rep.Reason, Started: rep.Started, Tries: rep.Tries, Error: rep.Error},
		string(rep.Output), next, m.ms())
	return settle.Settled
}

// settled answers the report of a run that has ended: by its row, which keeps a late report of
// another outcome.
func (j *job) settled(rep settle.Report) ledger.Status {
	row := j.row(rep.Run)
	switch {
	case row == nil:
		return ledger.NoSuchRun
	case row.Outcome == rep.Outcome:
		return settle.Settled
	case row.Late == "":
		row.Late = fmt.Sprintf("%s %d", rep.Outcome, rep.Ended)
	}
	return ledger.Lost
}

// Renew moves the end of a lease, also of a lapsed one that was not reaped, and counts the beat.
func (m *Ledger) Renew(renewal locking.Renewal) locking.RenewAnswer {
	j := m.jobs[renewal.Name]
	if j == nil {
		return locking.Gone
	}
	r := j.leased(renewal.Owner)
	if r == nil || renewal.Token != 0 && renewal.Token != r.Token {
		return locking.Gone
	}
	r.Until = m.ms() + renewal.TTL.Milliseconds()
	r.Beat++
	return locking.Renewed
}

// Reap ends a run whose lease has lapsed, as it was seen. The next attempt is pending then, if
// there may be one.
func (m *Ledger) Reap(seen ledger.Run) ledger.Status {
	j := m.jobs[seen.Job]
	if j == nil {
		return settle.Gone
	}
	r := j.leased(seen.ID)
	if r == nil {
		return settle.Gone
	}
	if r.Until > m.ms()+r.TTL+m.ahead {
		r.Until = m.ms() + r.TTL
	}
	if r.Beat != seen.Beat && m.on(BeatInReap) || r.Until >= m.ms() && m.on(UntilInReap) {
		return settle.Alive
	}
	freed := r.Until
	if r.TickID != "" {
		freed = m.ms()
	}
	m.end(j, r, ledger.Row{At: m.ms(), Outcome: jobs.OutcomeAbandoned, Reason: ledger.ReasonLapsed, Started: r.Granted}, "", m.next(r.ID), freed)
	return settle.Reaped
}

// Unclaim hands back a run whose function was not called: the same attempt is pending again, under
// an id that no claim names yet.
func (m *Ledger) Unclaim(back settle.Return) ledger.Status {
	j, next := m.jobs[back.Job], m.next(back.Run)
	if j == nil {
		return ledger.Lost
	}
	r := j.leased(back.Run)
	switch {
	case r == nil && j.waiting(next) != nil && j.row(back.Run) == nil:
		return settle.Returned
	case r == nil, back.Token != 0 && back.Token != r.Token:
		return ledger.Lost
	}
	if m.cancelled(r) {
		m.end(j, r, ledger.Row{At: m.ms(), Outcome: jobs.OutcomeCancelled, Reason: ledger.ReasonReplaced, Started: r.Granted}, "", "", m.ms())
		return settle.Returned
	}
	if !m.on(FreshIDInUnclaim) {
		next = back.Run
	}
	j.remove(r)
	if j.HolderRun == back.Run {
		j.free(r, m.ms(), next)
	}
	again := m.attempt(j, r, next, r.Attempt)
	again.Prev, again.Next, again.Trigger, again.step = r.Prev, r.Next, r.Trigger, r.step
	return settle.Returned
}

// attempt makes the pending run that follows upon another one.
func (m *Ledger) attempt(j *job, r *run, id string, number int) *run {
	next := &run{step: -1, Run: ledger.Run{
		ID: id, Job: r.Job, Tick: r.Tick, Shard: r.Shard, Shards: r.Shards, Attempt: number, Trigger: "rerun", Request: r.Request,
		Granted: m.ms(), ReservesJob: true, TickID: r.TickID, Param: r.Param, Payload: r.Payload,
	}}
	j.runs = append(j.runs, next)
	return next
}

// end removes a lease and writes the run's row; how has what the run itself lacks. With next, the
// next attempt follows under that id if there may be one.
func (m *Ledger) end(j *job, r *run, how ledger.Row, output, next string, freed int64) {
	if m.cancelled(r) || r.Attempt >= r.Attempts {
		next = ""
	}
	j.remove(r)
	m.close(j, r, how)
	if j.HolderRun == r.ID {
		j.free(r, freed, next)
	}
	if output != "" {
		m.kept[r.ID] = output
	}
	if next != "" {
		m.attempt(j, r, next, r.Attempt+1)
	} else if r.TickID != "" {
		m.shardEnded(j, r, how.Outcome, freed)
	}
	delete(m.cancels, r.ID)
}

// close writes the row of a run, leased or pending, and keeps its payload beside the row.
func (m *Ledger) close(j *job, r *run, how ledger.Row) {
	how.Job, how.Prev, how.Next, how.Tick, how.Shard, how.Shards, how.Attempt = r.Job, r.Prev, r.Next, r.Tick, r.Shard, r.Shards, r.Attempt
	how.Run, how.Token, how.Node, how.NodeName, how.Trigger, how.Request = r.ID, r.Token, r.Node, r.NodeName, r.Trigger, r.Request
	how.TickID, how.Param = r.TickID, r.Param
	m.write(j, row{how, r.step})
	j.Counts[how.Outcome]++
	if len(r.Payload) > 0 {
		m.kept["p:"+r.ID] = string(r.Payload)
	}
}

// cancelled reports whether there is a request to end a run, or the open tick that the run is a
// shard of.
func (m *Ledger) cancelled(r *run) bool {
	_, own := m.cancels[r.ID]
	_, all := m.cancels[r.TickID]
	return own || all
}

// fromBest are the outcomes of a shard from the best to the worst.
var fromBest = []jobs.Outcome{
	0, jobs.OutcomeSucceeded, jobs.OutcomeCancelled, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeLost, jobs.OutcomeAbandoned,
}

// shardEnded counts the end of a shard, and closes the tick with the last one.
func (m *Ledger) shardEnded(j *job, r *run, how jobs.Outcome, freed int64) {
	t := j.tick(r.TickID)
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
	j.remove(t)
	delete(m.cancels, t.ID)
	m.write(j, row{step: t.step, Row: ledger.Row{
		Job: j.Job, IsTick: true, Prev: t.Prev, Next: t.Next, At: m.ms(), Tick: t.Tick, Shards: t.Shards, Attempt: t.Attempt, Highest: t.top,
		Run: t.ID, Trigger: t.Trigger, Request: t.Request, Outcome: worst, Reason: reason, Started: t.Granted,
	}})
	if len(t.Payload) > 0 {
		m.kept["p:"+t.ID] = string(t.Payload)
	}
	if j.HolderRun == t.ID {
		j.free(t, freed, "")
	}
}

// free lets the job go, or hands it to the next attempt, and keeps the busy time that ended.
func (j *job) free(r *run, freed int64, next string) {
	switch j.HolderRun = next; {
	case r.Overlap == "s" && next == "":
		j.Busy = ledger.Window{}
	case r.Overlap != "a":
		if j.Busy.To = freed; j.Busy.From == 0 {
			j.Busy.From = r.Granted
		}
	}
}

// skip records ticks that did not run, in the last row if that has the same outcome and reason for
// the ticks before.
func (m *Ledger) skip(j *job, step int, skipped ledger.Row) {
	j.Counts[skipped.Outcome] += skipped.Count
	if n := len(j.rows); n > 0 {
		tail := &j.rows[n-1]
		if tail.Ranged && tail.Next == skipped.Tick && tail.Prev != 0 && tail.Outcome == skipped.Outcome && tail.Reason == skipped.Reason {
			tail.Next, tail.Until, tail.At, tail.step = skipped.Next, skipped.Until, m.ms(), step
			tail.Count += skipped.Count
			return
		}
	}
	skipped.Job, skipped.Ranged, skipped.At = j.Job, true, m.ms()
	m.write(j, row{skipped, step})
}

// write appends a row and trims: at every 16th, up to 32 also when the first is too old, at most
// 64, never the newest.
func (m *Ledger) write(j *job, added row) {
	j.rows = append(j.rows, added)
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
		if old.Outcome == jobs.OutcomeSucceeded && (old.IsTick || old.Shards < 2) {
			won = old.At // the last one wins
		}
		j.first, j.rows = max(j.first, old.step+1), j.rows[1:]
		delete(m.kept, old.Run)
		delete(m.kept, "p:"+old.Run)
		if !old.Ranged && old.Prev == 0 && old.Request == "" && j.Cursor == 0 { // a schedule that ended keeps the number of the next attempt
			j.ReattemptUntil, j.Reattempt = max(j.ReattemptUntil, old.Tick+1), max(j.Reattempt, old.Attempt+1)
		}
	}
}
