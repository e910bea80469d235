package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs"
)

var flatten = strings.NewReplacer("|", "/", "\n", " ")

func (m *model) settle(rep Report) Word {
	r := m.runs[rep.Run]
	switch {
	case r == nil:
		return m.settleLate(rep)
	case m.jobs[rep.Job] == nil || m.foreign["run "+rep.Run] || m.foreign["entry "+rep.Job]:
		return Strange
	case rep.Token != 0 && rep.Token != r.Token:
		return Lost
	case m.strange(r):
		return Strange
	}
	fresh := ""
	if rep.Rerun {
		fresh = Successor(rep.Run)
	}
	m.end(r, Row{At: rep.Ended, Outcome: rep.Outcome, Reason: flatten.Replace(rep.Reason), Started: rep.Started, Tries: rep.Tries, Error: rep.Error},
		string(rep.Output), fresh, m.ms())
	return Settled
}

// settleLate answers a report about a run that is not in flight: by its row.
func (m *model) settleLate(rep Report) Word {
	j := m.jobs[rep.Job]
	if j == nil {
		return NoSuchRun
	}
	row := j.row(rep.Run)
	switch {
	case row == nil:
		return NoSuchRun
	case row.Outcome == rep.Outcome:
		return Settled
	case row.Late == "":
		row.Late = fmt.Sprintf("%s %d", rep.Outcome, rep.Ended)
	}
	return Lost
}

// end takes a run out of flight and writes its row; how says what the run itself does not know. With
// fresh, the next attempt follows if there may be one.
func (m *model) end(r *modelRun, how Row, output, fresh string, freed int64) {
	j := m.jobs[r.Job]
	if r.Attempt >= r.Attempts {
		fresh = ""
	}
	_, unwanted := m.wanted(r)
	delete(m.runs, r.Run)
	m.close(j, r, how)
	going := fresh != "" && m.runs[fresh] != nil // the next attempt, after a failover
	over := fresh != "" && !going && j.row(fresh) != nil
	if over || !going && unwanted {
		fresh = ""
	}
	if j.Open == r.Run {
		j.free(r, freed, fresh)
	}
	if output != "" {
		m.kept[r.Run] = output
	}
	if going || over {
		delete(m.cancels, r.Run)
		return
	}
	if fresh != "" {
		m.waiting[fresh] = &modelRun{step: -1, Lease: Lease{Run: fresh, Job: r.Job, Tick: r.Tick, Shard: r.Shard, Shards: r.Shards,
			Attempt: r.Attempt + 1, Trigger: "rerun", Request: r.Request, Granted: m.ms(), Holds: true, Of: r.Of, Param: r.Param, Payload: r.Payload}}
	} else if r.Of != "" {
		m.part(j, r, how.Outcome, freed)
	} else if r.Shards == 1 {
		m.tellEnd(j, r, how.Outcome)
	}
	delete(m.cancels, r.Run)
}

// close writes the row of a run, leased or pending, and what is kept beside it.
func (m *model) close(j *modelJob, r *modelRun, how Row) {
	how.Job, how.Prev, how.Next, how.Tick, how.Shard, how.Shards, how.Attempt = r.Job, r.Prev, r.Next, r.Tick, r.Shard, r.Shards, r.Attempt
	how.Run, how.Token, how.Node, how.NodeName, how.Trigger, how.Request = r.Run, r.Token, r.Node, r.NodeName, r.Trigger, r.Request
	how.Of, how.Param = r.Of, r.Param
	m.write(j, modelRow{Row: how, step: r.step})
	j.count(how.Outcome, 1)
	if len(r.Payload) > 0 {
		m.kept["p:"+r.Run] = string(r.Payload)
	}
}

func (m *model) reap(seen Lease) Word {
	r := m.runs[seen.Run]
	switch {
	case r == nil:
		return Gone
	case m.foreign["run "+seen.Run] || m.foreign["entry "+seen.Job]:
		return Strange
	case r.Beat != seen.Beat || r.Until >= m.ms():
		return Alive
	case m.strange(r):
		return Strange
	}
	freed := r.Until
	if r.Of != "" {
		freed = m.ms()
	}
	m.end(r, Row{At: m.ms(), Outcome: jobs.OutcomeAbandoned, Reason: ReasonLapsed, Started: r.Granted}, "", Successor(r.Run), freed)
	return Reaped
}

func (m *model) unclaim(back Return) Word {
	r, fresh := m.runs[back.Run], Successor(back.Run)
	switch {
	case r == nil && m.waiting[fresh] != nil && (m.jobs[back.Job] == nil || m.jobs[back.Job].row(back.Run) == nil):
		return Returned
	case r == nil:
		return Lost
	case m.foreign["run "+back.Run] || m.foreign["entry "+back.Job]:
		return Strange
	case back.Token != 0 && back.Token != r.Token:
		return Lost
	}
	if wish, unwanted := m.wanted(r); unwanted {
		if m.strange(r) {
			return Strange
		}
		m.end(r, Row{At: m.ms(), Outcome: jobs.OutcomeCancelled, Reason: wish.why(), Started: r.Granted}, "", "", m.ms())
		return Returned
	}
	delete(m.runs, back.Run)
	if j := m.jobs[back.Job]; j.Open == back.Run {
		j.free(r, m.ms(), fresh)
	}
	m.waiting[fresh] = &modelRun{step: r.step, Lease: Lease{Run: fresh, Job: r.Job, Tick: r.Tick, Shard: r.Shard, Shards: r.Shards,
		Attempt: r.Attempt, Prev: r.Prev, Next: r.Next, Trigger: r.Trigger, Request: r.Request, Granted: m.ms(), Holds: true, Of: r.Of, Param: r.Param, Payload: r.Payload}}
	return Returned
}

func (m *model) cancel(job, id, author, reason string) (Word, string) {
	author, reason = cmp.Or(flatten.Replace(author), "somebody"), flatten.Replace(reason)
	j, why := m.job(job)
	if j == nil {
		return "", strings.Replace(why, "job", "run", 1)
	}
	if r := m.runs[id]; r != nil && m.place(r.Job) == m.place(job) {
		if r.Job != job && !m.foreign["run "+id] {
			return "", "unknown run"
		}
		m.wish(id, author, reason)
		return Told, ""
	}
	r := m.waiting[id]
	switch {
	case r != nil && m.place(r.Job) != m.place(job):
		return "", "unknown run"
	case r != nil && m.foreign["pending "+id]:
		return "", "foreign"
	case r != nil && r.Job != job:
		return "", "unknown run"
	case r == nil && j.row(id) == nil:
		return "", "unknown run"
	case r == nil && j.row(id).Outcome == jobs.OutcomeCancelled:
		return Cancelled, ""
	case r == nil:
		return "", "refused"
	case m.shut(job) != nil:
		return "", failed(m.shut(job))
	case r.Whole:
		m.wish(id, author, reason)
		return Told, ""
	case m.strange(r):
		return "", "foreign"
	}
	delete(m.waiting, id)
	r.Token, r.Node, r.NodeName = 0, "", ""
	m.close(j, r, Row{At: m.ms(), Outcome: jobs.OutcomeCancelled, Reason: Cancel{Author: author, Reason: reason}.why(), Started: m.ms()})
	if r.Of != "" {
		m.part(j, r, jobs.OutcomeCancelled, m.ms())
	} else if r.Shards == 1 && (r.Holds || r.Trigger != "rerun") {
		m.tellEnd(j, r, jobs.OutcomeCancelled)
	}
	if j.Open == id {
		j.letGo(m.ms())
	}
	return Cancelled, ""
}

// going says whether a run that is in flight or pending is as asked for; "foreign" when one of the job
// cannot be read. Those in flight are looked at first.
func (m *model) going(job string, ok func(kind string, r *modelRun) bool) string {
	for _, kind := range []string{"run", "pending"} {
		found := ""
		for id, r := range map[string]map[string]*modelRun{"run": m.runs, "pending": m.waiting}[kind] {
			switch {
			case r.Job != job, r.Whole && !m.foreign[kind+" "+id]:
			case !m.foreign[kind+" "+id] && ok(kind, r):
				return "yes"
			case m.foreign[kind+" "+id]:
				found = "foreign"
			}
		}
		if found != "" {
			return found
		}
	}
	return ""
}

// goesBy says whether a run is there under its id, or one that it got when it was handed back.
func (m *model) goesBy(j *modelJob, id string) bool {
	for range handBacks + 1 {
		if m.runs[id] != nil || m.waiting[id] != nil || j.row(id) != nil {
			return true
		}
		id = Successor(id)
	}
	return false
}

func (m *model) rerun(job, id string) (string, string) {
	fresh := Successor(id)
	j, why := m.job(job)
	if j == nil {
		return "", strings.Replace(why, "job", "run", 1)
	}
	row := j.row(id)
	switch {
	case m.goesBy(j, fresh):
		return fresh, ""
	case m.runs[id] != nil || m.waiting[id] != nil:
		return "", "refused"
	case row == nil:
		return "", "unknown run"
	}
	r := &modelRun{step: -1, Lease: Lease{Run: fresh, Job: job, Tick: row.Tick, Shard: row.Shard, Shards: row.Shards, Attempt: row.highest() + 1,
		Param: row.Param, Trigger: "rerun", Granted: m.ms(), Payload: m.payloadOf(row)}}
	all := row.Whole || row.Shards == 1 // it may be opened, and then it is an attempt of each shard
	if all {
		r.Shards = 1
	}
	if row.Request != "" {
		r.Request = fresh
		for _, other := range j.rows {
			if other.Of == id {
				r.Attempt = max(r.Attempt, other.highest()+1)
			}
		}
	} else {
		same := func(_ string, o *modelRun) bool {
			return o.Request == "" && o.Tick == row.Tick && (all || o.Shard == row.Shard || o.Shards == 1)
		}
		if m.going(job, same) != "" || j.Cursor != 0 && row.Tick >= j.Cursor && row.Tick < j.Again {
			return "", "refused"
		}
		for _, other := range j.rows {
			mine := all || other.Shard == row.Shard || other.Whole && row.Shard < other.Shards
			if !other.Ranged && other.Request == "" && other.Tick == row.Tick && mine {
				nth := other.Attempt
				if all {
					nth = other.highest()
				}
				r.Attempt = max(r.Attempt, nth+1)
			}
		}
	}
	m.waiting[fresh] = r
	return fresh, ""
}

// knows says whether a run was asked for before: it is pending, in flight or in the books, under
// its own id or, handed back since, under another.
func (m *model) knows(j *modelJob, id string) bool {
	for _, set := range []map[string]*modelRun{m.runs, m.waiting} {
		for _, r := range set {
			if r.Job == j.Job && (r.Run == id || r.Request == id) {
				return true
			}
		}
	}
	return slices.ContainsFunc(j.rows, func(row modelRow) bool { return row.Run == id || row.Request == id })
}
