package model

import (
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// claimPending grants a pending run, or records that it is not to run any more.
func (m *Ledger) claimPending(by claim.Claimer, j *job, c claim.Claim) claim.Answer {
	r := j.waiting(c.Run)
	if r == nil && !m.on(AttemptRule) {
		r = j.ofTick(c.Tick)
	}
	switch {
	case r == nil:
		return j.stale()
	case r.IsOpenTick:
		return j.opened(c.Run)
	case r.Granted > m.ms():
		return claim.Answer{Verdict: claim.Early}
	case r.TickID != "":
		return m.claimShard(by, j, r, c)
	case c.Drop != "" && r.Prev != 0: // a run of the schedule that was handed back comes too late
		j.remove(r)
		m.skip(j, r.step, ledger.Row{Prev: r.Prev, Next: r.Next, Tick: r.Tick, Until: r.Tick, Count: 1, Outcome: jobs.OutcomeMissed, Reason: c.Drop})
		if j.HolderRun == c.Run {
			if j.HolderRun = ""; j.Busy != (ledger.Window{}) {
				j.Busy.To = m.ms()
			}
		}
		return claim.Answer{Verdict: claim.RecordedOnly, Cursor: j.Cursor, Detail: jobs.OutcomeMissed.String() + "," + c.Drop}
	case c.Overlap != jobs.OverlapAllow && j.HolderRun != "" && j.HolderRun != c.Run && m.on(AttemptRule):
		return j.held()
	}
	j.remove(r)
	if splits(c) && r.Shards == 1 && !(r.ReservesJob && r.Attempt > 1 && m.on(BegunWhole)) { // else it has begun as a whole
		return m.openTick(j, c, r)
	}
	m.grant(by, j, c, r)
	return j.granted(m, r)
}

// ofTick is a run of a tick, leased or pending.
func (j *job) ofTick(tick int64) *run {
	i := slices.IndexFunc(j.runs, func(r *run) bool { return r.Tick == tick && !r.IsOpenTick })
	if i < 0 {
		return nil
	}
	return j.runs[i]
}

// claimShard grants a shard of an open tick, or records that it is not to run any more.
func (m *Ledger) claimShard(by claim.Claimer, j *job, r *run, c claim.Claim) claim.Answer {
	switch {
	case c.Overlap != jobs.OverlapAllow && j.HolderRun != "" && j.HolderRun != r.TickID:
		return j.held()
	case m.cancelled(r):
		j.remove(r)
		r.Token, r.Node, r.NodeName = 0, "", ""
		m.close(j, r, ledger.Row{At: m.ms(), Outcome: jobs.OutcomeCancelled, Reason: ledger.ReasonReplaced, Started: m.ms()})
		m.shardEnded(j, r, jobs.OutcomeCancelled, m.ms())
		return claim.Answer{Verdict: claim.RecordedOnly, Cursor: j.Cursor, Detail: "cancelled," + ledger.ReasonReplaced}
	}
	if t := j.tick(r.TickID); !m.on(PinnedShards) {
		t.Left += max(1, c.Shards) - t.Shards
		t.Shards = max(1, c.Shards)
	}
	j.remove(r)
	m.grant(by, j, c, r)
	return j.granted(m, r)
}

// granted is the answer to a pending run that is granted now.
func (j *job) granted(m *Ledger, r *run) claim.Answer {
	return claim.Answer{Verdict: claim.Granted, Token: r.Token, Left: millis(r.Until - m.ms()), Run: j.carried(r)}
}

// carried is a run as its node gets it: a shard with its tick's payload.
func (j *job) carried(r *run) ledger.Run {
	l := r.Run
	l.ID = ""
	if t := j.tick(r.TickID); t != nil {
		l.Payload = t.Payload
	}
	return l
}

// openTick opens a tick in the place of the run that p would be. Its shards are pending then.
func (m *Ledger) openTick(j *job, c claim.Claim, p *run) claim.Answer {
	j.runs = append(j.runs, &run{step: p.step, Run: ledger.Run{
		ID: c.Run, IsOpenTick: true, Job: j.Job, Tick: p.Tick, Shards: c.Shards, Left: c.Shards, Attempt: p.Attempt, Prev: p.Prev, Next: p.Next,
		Trigger: p.Trigger, Request: p.Request, Granted: m.ms(), Overlap: mode(c), Payload: p.Payload,
	}})
	for i := range c.Shards {
		l := ledger.Run{
			ID: claim.ShardRun(c.Run, i), Job: j.Job, Tick: p.Tick, Shard: i, Shards: c.Shards, Attempt: p.Attempt, Trigger: p.Trigger,
			Request: p.Request, Granted: m.ms(), TickID: c.Run, Payload: []byte{},
		}
		if i < len(c.Params) {
			l.Param = c.Params[i]
		}
		j.runs = append(j.runs, &run{step: -1, Run: l})
	}
	j.hold(c, c.Run)
	return j.opened(c.Run)
}
