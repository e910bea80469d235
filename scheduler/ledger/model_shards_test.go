package ledger

import (
	"fmt"
	"slices"

	"github.com/escapement/escapement/jobs"
)

// The slow twin's sharded ticks. An open one lies in waiting like a pending run, and is none.

// tickOf is an open tick that can be read, nil when there is none of that id.
func (m *model) tickOf(id string) *modelRun {
	if t := m.waiting[id]; t != nil && t.Whole && !m.foreign["pending "+id] {
		return t
	}
	return nil
}

// strange says that a run is a shard of an open tick that cannot be read.
func (m *model) strange(r *modelRun) bool {
	return r.Of != "" && m.waiting[r.Of] != nil && m.tickOf(r.Of) == nil
}

// splits says whether a claim is one of a job with shards, and not of a shard.
func (c Claim) splits() bool { return c.Shards > 1 && !c.Shard }

func (j *modelJob) opened(id string) Answer {
	return Answer{Verdict: Opened, Cursor: j.Cursor, Detail: id}
}

// openTick opens a tick in the place of the run that p would be.
func (m *model) openTick(j *modelJob, c Claim, p *modelRun) Answer {
	m.waiting[c.Run] = &modelRun{step: p.step, Lease: Lease{Run: c.Run, Whole: true, Job: j.Job, Tick: p.Tick, Shards: c.Shards, Left: c.Shards,
		Attempt: p.Attempt, Prev: p.Prev, Next: p.Next, Trigger: p.Trigger, Request: p.Request, Granted: m.ms(),
		Overlap: c.Overlap.String()[:1], Payload: p.Payload}}
	for i := range c.Shards {
		l := Lease{Run: ShardRun(c.Run, i), Job: j.Job, Tick: p.Tick, Shard: i, Shards: c.Shards, Attempt: p.Attempt, Trigger: p.Trigger,
			Request: p.Request, Granted: m.ms(), Of: c.Run, Payload: []byte{}}
		if i < len(c.Params) {
			l.Param = c.Params[i]
		}
		m.waiting[l.Run] = &modelRun{step: -1, Lease: l}
	}
	m.hold(j, c, c.Run)
	return j.opened(c.Run)
}

// hold makes what is granted, or opened, hold the job, unless its runs may overlap.
func (m *model) hold(j *modelJob, c Claim, id string) {
	switch {
	case c.Overlap == jobs.OverlapAllow && j.Open == id:
		j.Open = ""
	case c.Overlap != jobs.OverlapAllow && j.Open != id:
		j.Open, j.Busy = id, Window{}
	}
}

// claimShard is the claim of a shard of an open tick. It waits for nothing but another run that holds the
// job, which there is only when the tick was opened under overlap allow.
func (m *model) claimShard(by Claimer, j *modelJob, r *modelRun, c Claim) Answer {
	allow := c.Overlap == jobs.OverlapAllow
	switch wish, unwanted := m.wanted(r); {
	case m.strange(r):
		return Answer{Verdict: Foreign}
	case !allow && j.Open != "" && j.Open != r.Of:
		return Answer{Verdict: Held, Detail: j.Open}
	case unwanted:
		delete(m.waiting, r.Run)
		r.Token, r.Node, r.NodeName = 0, "", ""
		m.close(j, r, Row{At: m.ms(), Outcome: jobs.OutcomeCancelled, Reason: wish.why(), Started: m.ms()})
		m.part(j, r, jobs.OutcomeCancelled, m.ms())
		return Answer{Verdict: Passed, Cursor: j.Cursor, Detail: "cancelled," + wish.why()}
	}
	delete(m.waiting, r.Run)
	m.grant(by, j, c, r)
	a := Answer{Verdict: Granted, Token: r.Token, Left: c.TTL, Run: m.carried(r)}
	return a
}

// carried is a run as its node gets it: a shard with its tick's payload.
func (m *model) carried(r *modelRun) Lease {
	l := r.Lease
	l.Run = ""
	if t := m.tickOf(r.Of); t != nil {
		l.Payload = t.Payload
	}
	return l
}

// wanted is who wants a run ended, or the open tick that it is a shard of.
func (m *model) wanted(r *modelRun) (Cancel, bool) {
	if wish, own := m.cancels[r.Run]; own || r.Of == "" {
		return wish, own
	}
	wish, all := m.cancels[r.Of]
	return wish, all
}

// highest is the attempt that a row tells of, of a tick the highest of its shards.
func (r modelRow) highest() int {
	if r.Whole {
		return r.Highest
	}
	return r.Attempt
}

// fromBest are the outcomes of a shard from the best to the worst.
var fromBest = []jobs.Outcome{0, jobs.OutcomeSucceeded, jobs.OutcomeCancelled, jobs.OutcomeFailed, jobs.OutcomeTimedOut, jobs.OutcomeLost,
	jobs.OutcomeAbandoned}

// part takes note of the end of a shard, and closes the tick with the last one.
func (m *model) part(j *modelJob, r *modelRun, how jobs.Outcome, freed int64) {
	id := r.Of
	t := m.tickOf(id)
	if t == nil {
		return // it is closed, and a failover has lost that this shard had ended before
	}
	t.ends, t.top = append(t.ends, how), max(t.top, t.Attempt, r.Attempt)
	if t.Left--; t.Left > 0 {
		return
	}
	worst := fromBest[0]
	reason, good := "", 0
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
	m.write(j, modelRow{step: t.step, Row: Row{Job: j.Job, Whole: true, Prev: t.Prev, Next: t.Next, At: m.ms(), Tick: t.Tick, Shards: t.Shards,
		Attempt: t.Attempt, Highest: t.top, Run: id, Trigger: t.Trigger, Request: t.Request, Outcome: worst, Reason: reason, Started: t.Granted}})
	if len(t.Payload) > 0 {
		m.kept["p:"+id] = string(t.Payload)
	}
	if j.Open == id {
		j.free(t, freed, "")
	}
	m.tellEnd(j, t, worst)
}

// free lets go of the job, or hands it on to the next attempt.
func (j *modelJob) free(r *modelRun, freed int64, fresh string) {
	switch j.Open = fresh; {
	case r.Overlap == "s" && fresh == "":
		j.Busy = Window{}
	case r.Overlap != "a":
		if j.Busy.To = freed; j.Busy.From == 0 {
			j.Busy.From = r.Granted
		}
	}
}

// letGo frees the job from a pending run that was granted before.
func (j *modelJob) letGo(ms int64) {
	if j.Open = ""; j.Busy != (Window{}) {
		j.Busy.To = ms
	}
}

// payloadOf is what a rerun of a row is given: a shard's is its tick's, which may be open.
func (m *model) payloadOf(row *modelRow) []byte {
	id := row.Run
	if row.Of != "" {
		id = row.Of
	}
	if t := m.tickOf(id); t != nil {
		return t.Payload
	}
	return []byte(m.kept["p:"+id])
}
