package ledger

import (
	"maps"
	"slices"

	"github.com/escapement/escapement/jobs"
)

// The slow twin after a failover.

// clone is the model as it is now.
func (m *model) clone() *model {
	c := *m
	c.jobs, c.runs, c.waiting = map[string]*modelJob{}, map[string]*modelRun{}, map[string]*modelRun{}
	for name, j := range m.jobs {
		other := *j
		other.Counts, other.rows, other.steps = maps.Clone(j.Counts), slices.Clone(j.rows), slices.Clone(j.steps)
		c.jobs[name] = &other
	}
	for from, to := range map[*map[string]*modelRun]map[string]*modelRun{&m.runs: c.runs, &m.waiting: c.waiting} {
		for id, r := range *from {
			other := *r
			other.ends = slices.Clone(r.ends)
			to[id] = &other
		}
	}
	c.foreign, c.kept, c.cancels, c.pauses = maps.Clone(m.foreign), maps.Clone(m.kept), maps.Clone(m.cancels), maps.Clone(m.pauses)
	c.due, c.followers, c.outbox, c.told = maps.Clone(m.due), maps.Clone(m.followers), maps.Clone(m.outbox), maps.Clone(m.told)
	return &c
}

// apart is the answer to a run that is no step of a job that was defined anew.
const apart Word = "apart"

func (m *model) reassert(a Assertion) Asserted {
	l := a.Lease
	j, why := m.job(l.Job)
	was := m.runs[l.Run]
	switch {
	case was != nil && m.foreign["run "+l.Run]:
		return Asserted{Word: Strange}
	case why == "foreign":
		return Asserted{Word: Strange}
	case j == nil:
		return Asserted{Word: NoSuchJob}
	case was != nil && was.Token != l.Token:
		return Asserted{Lost, j.Cursor}
	case was != nil:
		was.Until, was.Beat = m.ms()+was.TTL, was.Beat+1
		return Asserted{Known, j.Cursor}
	case j.row(l.Run) != nil:
		return Asserted{Ended, j.Cursor}
	case m.tickOf(l.Run) != nil:
		return Asserted{Lost, j.Cursor}
	case m.foreign["pending "+l.Run] && m.waiting[l.Run] != nil:
		return Asserted{Word: Strange}
	}
	l.Until, l.Beat, l.Holds = m.ms()+l.TTL, 0, false
	l.Payload = append([]byte{}, l.Payload...)
	r := &modelRun{Lease: l, step: -1}
	word := m.room(j, r, a)
	if word == apart {
		r.Prev, r.Next, word = 0, 0, Restored
	}
	if word != Restored {
		return Asserted{word, j.Cursor}
	}
	if r.Of != "" {
		r.Payload = []byte{}
	} else if r.Overlap != "a" && j.Open != r.Run && !m.later(j.Open, l) {
		j.Open, j.Busy = r.Run, Window{}
	}
	if r.Attempt > 1 || r.Of != "" {
		j.Retold = max(j.Retold, r.Tick)
	}
	delete(m.waiting, r.Run)
	m.runs[r.Run], j.Token = r, max(j.Token, r.Token)
	return Asserted{Restored, j.Cursor}
}

// room makes room for a run that was lost.
func (m *model) room(j *modelJob, r *modelRun, a Assertion) Word {
	ahead := j.Cursor != 0 && j.Cursor <= r.Tick // of the cursor, or at it
	asked := m.waiting[r.Run]
	switch {
	case slices.ContainsFunc(j.rows, func(o modelRow) bool { // this very attempt has ended, under another id
		return !o.Ranged && !o.Whole && !o.foreign && o.Tick == r.Tick && o.Shard == r.Shard && o.Attempt == r.Attempt && o.Request == r.Request && o.Of == r.Of
	}):
		return Lost
	case asked != nil && r.Of == "":
		r.step = asked.step
		return Restored
	case r.Of != "":
		word := m.reopen(j, r, a)
		if word == Restored && r.Run != ShardRun(r.Of, r.Shard) {
			if newer, _, _ := m.before(j, r); newer {
				return Lost
			}
		}
		return word
	case r.Run == r.Request:
		return Restored
	case r.Prev != 0 && ahead:
		return m.makeUp(j, r, a, r.Next)
	}
	newer, there, earlier := m.before(j, r)
	first := slices.ContainsFunc(j.rows, func(row modelRow) bool { return !row.Ranged && !row.foreign && row.Request == "" && row.Tick == r.Tick })
	switch {
	case newer:
		return Lost
	case there:
		return Restored
	case r.Prev != 0:
		return m.makeUp(j, r, a, r.Next)
	case r.Trigger != "rerun" || r.Request != "" || j.Cursor == 0 || earlier || first:
		return Restored
	case ahead && (a.Gap == nil || a.Next == 0):
		return Behind
	}
	word := m.makeUp(j, r, a, a.Next)
	if word == Restored {
		r.Prev, r.Next = r.Tick, a.Next
	}
	return word
}

// makeUp makes the step of the cursor that a run, or the tick that it is a shard of, was.
func (m *model) makeUp(j *modelJob, r *modelRun, a Assertion, next int64) Word {
	switch at := r.Tick; {
	case (j.Cursor == 0 || j.Cursor > at) && (j.base() > at || j.base() == 0 && j.Last < at):
		return apart
	case j.Cursor == 0 || j.Cursor > at:
		return Lost
	case j.Digest != a.Digest:
		return OtherDef
	case j.Cursor < at && (a.Gap == nil || a.Gap.First != j.Cursor):
		return Behind
	case j.Cursor < at:
		m.passed(j, len(j.steps), Row{Prev: j.Cursor, Next: at, Tick: j.Cursor, Until: a.Gap.Last, Count: a.Gap.Count, Outcome: jobs.OutcomeMissed, Reason: ReasonFailover})
		j.move(at)
	}
	r.step = j.move(next)
	j.Last, m.due[j.Job] = r.Tick, next
	j.shed(m.ms())
	return Restored
}

// reopen finds the open tick of a shard, or opens it anew.
func (m *model) reopen(j *modelJob, r *modelRun, a Assertion) Word {
	asked := m.waiting[r.Of]
	switch {
	case m.tickOf(r.Of) != nil:
		return Restored
	case asked != nil && m.foreign["pending "+r.Of]:
		return Strange
	case !a.Reopen || r.Shards < 2 || j.row(r.Of) != nil, asked == nil && (j.base() == 0 || j.base() > r.Granted):
		return Lost
	case asked != nil:
	case r.Trigger == "rerun" && a.Gap == nil && j.Cursor != 0 && j.Cursor <= r.Tick:
		return Behind
	case r.Trigger == "rerun":
		return Lost
	}
	open, busy := j.Open, j.Busy
	c := Claim{Run: r.Of, Shards: r.Shards, Params: a.Params, Overlap: map[string]jobs.Overlap{"s": jobs.OverlapSkip, "q": jobs.OverlapQueue,
		"r": jobs.OverlapReplace, "a": jobs.OverlapAllow}[r.Overlap]}
	if asked == nil {
		t := *r
		t.Prev, t.Next, t.step, asked = 0, 0, -1, &t
		one := modelRun{Lease: Lease{Run: r.Of, Job: r.Job, Tick: r.Tick, Shards: 1, Attempt: r.Attempt, Token: r.Token, Request: r.Request}, step: -1}
		newer, there, _ := m.before(j, &one) // it was a run by itself, and was handed back
		if newer {
			return Lost
		}
		if there {
			t.Prev, t.Next, t.step = one.Prev, one.Next, one.step
		} else if r.Trigger == "schedule" || r.Trigger == "catch_up" {
			word := m.makeUp(j, &t, a, a.Next)
			if word == apart {
				word = Lost
			}
			if t.Prev, t.Next = t.Tick, a.Next; word != Restored {
				return word
			}
		}
	}
	us := m.us
	m.us = min(us, r.Granted*1000) // as if it had been then
	m.openTick(j, c, asked)
	if m.us = us; m.later(open, r.Lease) {
		j.Open, j.Busy = open, busy
	}
	return Restored
}

// later says whether what goes by that id was granted after a run.
func (m *model) later(id string, l Lease) bool {
	if o := m.runs[id]; o != nil && !m.foreign["run "+id] {
		return o.Token > l.Token
	}
	t := m.tickOf(id)
	return t != nil && t.Granted > l.Granted
}

// before takes away what is left of a run under its earlier ids. newer: it was granted since; there: there was something;
// earlier: an attempt before it is going.
func (m *model) before(j *modelJob, r *modelRun) (newer, there, earlier bool) {
	one := func(kind, id string, o *modelRun) bool {
		return id != r.Run && !o.Whole && !m.foreign[kind+" "+id] && o.Job == r.Job && o.Tick == r.Tick && o.Shard == r.Shard &&
			o.Shards == r.Shards && o.Request == r.Request && o.Of == r.Of
	}
	for id, o := range m.runs {
		newer = newer || one("run", id, o) && o.Token > r.Token
	}
	if newer {
		return true, false, false
	}
	for kind, set := range map[string]map[string]*modelRun{"run": m.runs, "pending": m.waiting} {
		for id, o := range set {
			if !one(kind, id, o) || o.Attempt > r.Attempt {
				continue
			}
			if o.Attempt < r.Attempt && kind == "run" {
				earlier = true // it will be told of, or lapse
				continue
			}
			there = true
			delete(set, id)
			if j.Open == id {
				j.Open = ""
			}
			if o.Prev != 0 {
				r.Prev, r.Next, r.step = o.Prev, o.Next, o.step
			}
		}
	}
	return false, there, earlier
}
