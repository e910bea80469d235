package ledger

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs"
)

func (m *model) trigger(job string, t Trigger) (string, string) {
	id := t.Run
	if t.Unique != "" {
		id = UniqueRun(job, t.Unique)
	}
	j, why := m.job(job)
	switch {
	case j == nil:
		return "", why
	case m.knows(j, id):
		return id, ""
	}
	if t.Unique != "" {
		if m.forget(job); m.remembers(job, id) {
			return id, ""
		}
	}
	at := t.At
	if at == 0 {
		at = m.ms()
	}
	m.waiting[id] = &modelRun{step: -1, Lease: Lease{Run: id, Job: job, Tick: at, Shards: 1, Attempt: 1, Trigger: "manual",
		Request: id, Granted: at, Payload: append([]byte{}, t.Payload...)}}
	if t.Unique != "" {
		m.remember(job, id, max(at, m.ms())+m.keepFor)
	}
	return id, ""
}

// The partition remembers that something was asked for, or told, until some time is over.
func (m *model) remembers(job, id string) bool { return m.told[m.place(job)+id] != 0 }

func (m *model) forget(job string) {
	for id, until := range m.told {
		if strings.HasPrefix(id, m.place(job)) && until <= m.ms() {
			delete(m.told, id)
		}
	}
}

func (m *model) remember(job, id string, until int64) { m.told[m.place(job)+id] = until }

func (m *model) place(job string) string { return fmt.Sprint(Partition(job, tracePartitions), " ") }

func (m *model) pause(job string, p Pause) string {
	j, why := m.job(job)
	switch {
	case j == nil:
		return why
	case p.Until != 0 && p.Until <= m.ms():
		return "refused"
	}
	since := m.ms()
	if j.Cursor != 0 {
		since = min(since, j.Cursor)
	}
	if j.Pause.From != 0 {
		since = min(since, j.Pause.From) // one that was not accounted for yet goes on
	}
	j.Pause = Window{since, p.Until}
	m.pauses[job] = Pause{Since: m.ms(), Until: p.Until, Author: flatten.Replace(p.Author), Reason: flatten.Replace(p.Reason)}
	return ""
}

func (m *model) resume(job string) string {
	j, why := m.job(job)
	if j == nil {
		return why
	}
	delete(m.pauses, job)
	if j.paused(m.ms()) {
		j.Pause.To = m.ms()
		j.shed(m.ms())
	}
	return ""
}

func (m *model) rewind(r Rewind) (Word, string) {
	j, why := m.job(r.Job)
	if j == nil {
		return "", why
	}
	busy := m.going(r.Job, func(kind string, o *modelRun) bool { return kind == "run" || o.Request == "" })
	switch {
	case j.Digest != r.Digest || j.Cursor != r.From:
		return Elsewhere, ""
	case j.Open != "" || busy != "" || j.reaches() == 0 || r.To < j.reaches() || j.Cursor != 0 && r.To >= j.Cursor:
		return "", "refused"
	}
	attempt, bound := 0, j.Cursor
	for _, row := range j.rows {
		if !row.Ranged && !row.foreign && row.Tick >= r.To {
			attempt = max(attempt, row.highest())
		}
	}
	m.write(j, modelRow{step: len(j.steps), Row: Row{Job: j.Job, Ranged: true, Prev: j.Cursor, Next: r.To, At: m.ms(), Tick: r.To,
		Outcome: jobs.OutcomeSuperseded, Reason: ReasonRewound}})
	switch { // a schedule that ended had its ticks up to the last
	case bound == 0 && j.Last == 0:
		bound = m.ms() + 1
	case bound == 0:
		bound = j.Last + 1
	}
	attempt, bound = max(attempt, j.AgainAttempt-1), max(bound, j.Again)
	j.shed(m.ms())
	j.move(r.To)
	j.Again, j.AgainAttempt, j.Last, j.Busy, m.due[j.Job] = bound, attempt+1, r.To-1, Window{}, r.To
	j.stretch(m.ms())
	return Rewound, ""
}

func (m *model) remove(job string) string {
	j := m.jobs[job]
	switch {
	case j == nil:
		return "unknown job"
	}
	switch going := m.going(job, func(kind string, _ *modelRun) bool { return kind == "run" }); {
	case going == "yes", going == "foreign" && m.unreadable("run", job):
		return "refused"
	case going == "foreign":
		return "foreign"
	}
	for id, r := range m.waiting {
		if r.Job == job && !m.foreign["pending "+id] {
			delete(m.waiting, id)
			delete(m.cancels, id)
			delete(m.told, m.place(job)+r.Request)
		}
	}
	for _, row := range j.rows {
		m.drop(row)
		delete(m.told, m.place(job)+row.Request)
	}
	delete(m.jobs, job)
	delete(m.pauses, job)
	delete(m.followers, job)
	delete(m.due, job)
	delete(m.foreign, "entry "+job)
	return ""
}

// unreadable says whether a job has a run, or a pending one, that cannot be read.
func (m *model) unreadable(kind, job string) bool {
	for id, r := range map[string]map[string]*modelRun{"run": m.runs, "pending": m.waiting}[kind] {
		if r.Job == job && m.foreign[kind+" "+id] {
			return true
		}
	}
	return false
}

func (m *model) follow(o op) string {
	upstream, job, add := o.upstream, o.job, o.kind == "follow"
	if o.promotes && o.epoch != m.gate(upstream).epoch {
		return "refused"
	}
	list := slices.DeleteFunc(slices.Clone(m.followers[upstream]), func(name string) bool { return name == job && !add })
	if add && !slices.Contains(list, job) {
		list = append(list, job)
	}
	m.followers[upstream] = list
	return ""
}

// tell leaves word of ticks of a job, if others follow it.
func (m *model) tell(j *modelJob, e Event) {
	if len(m.followers[j.Job]) > 0 {
		e.Upstream, e.At = j.Job, m.ms()
		m.outbox[recordOf(e)] = e
	}
}

// tellEnd leaves word of how a tick ended, unless it has succeeded before.
func (m *model) tellEnd(j *modelJob, r *modelRun, outcome jobs.Outcome) {
	succeeded := false
	for _, row := range j.rows {
		switch {
		case row.foreign:
		case row.Ranged && row.Reason == "rewound" && row.Next <= r.Tick:
			succeeded = false
		case !row.Ranged && row.Tick == r.Tick && row.Request == "" && row.Outcome == jobs.OutcomeSucceeded && (row.Whole || row.Shards == 1):
			succeeded = true
		}
	}
	if r.Request == "" && (outcome == jobs.OutcomeSucceeded || r.Trigger != "rerun" || !succeeded) {
		m.tell(j, Event{Prev: r.Prev, Next: r.Next, Tick: r.Tick, Until: r.Tick, Count: 1, Outcome: outcome})
	}
}

// recordOf is an event as it stands in the outbox.
func recordOf(e Event) string {
	return fmt.Sprintf("1|%s|%s|%s|%d|%d|%d|%s|%d", e.Upstream, orNone(e.Prev), orNone(e.Next), e.Tick, e.Until, e.Count, e.Outcome, e.At)
}

func (m *model) relay(e Event, job string) Word {
	j, why := m.job(job)
	follows := m.jobs[job] != nil && m.jobs[job].follows() == e.Upstream
	if !follows && (j == nil || !j.replacedSince(e.At)) {
		return RelayStranger
	}
	if j == nil {
		return Word(why)
	}
	m.forget(job)
	id, mark := e.run(job), e.run(job)
	if e.Outcome != jobs.OutcomeSucceeded {
		mark += " " + e.Outcome.String() + " " + ms(e.Until)
	}
	before, runs := RelayDone, e.Outcome == jobs.OutcomeSucceeded && !e.Unheld && follows
	if !m.remembers(job, mark) {
		before = m.answered(j, e, id, runs)
	}
	if before == "foreign" {
		return before
	}
	m.remember(job, mark, m.ms()+relayedFor.Milliseconds())
	if before == RelayDone {
		return before
	}
	if runs {
		if n := j.next(e.Tick); n > 1 {
			id += fmt.Sprint("-", n)
		}
		m.waiting[id] = &modelRun{step: -1, Lease: Lease{Run: id, Job: job, Tick: e.Tick, Shards: 1, Attempt: j.next(e.Tick), Trigger: "after",
			Granted: min(m.ms(), e.At), Payload: []byte{}}}
		return RelayDone
	}
	row := Row{Next: e.Next, Tick: e.Tick, Until: e.Until, Count: e.Count, Outcome: jobs.OutcomeSkipped, Reason: ReasonUpstream, Note: e.Outcome.String()}
	if e.Outcome == jobs.OutcomeSucceeded { // and nobody could run it, or nobody will
		row.Outcome, row.Reason, row.Note = jobs.OutcomeMissed, ReasonLate, ""
	}
	m.passed(j, -1, row)
	return RelayDone
}

// follows is the job that this one's definition names.
func (j *modelJob) follows() string {
	var def struct{ After string }
	if json.Unmarshal(j.text, &def) != nil {
		return ""
	}
	return def.After
}

// replacedSince says whether a job got another definition at an instant or later.
func (j *modelJob) replacedSince(at int64) bool {
	return slices.ContainsFunc(j.rows, func(r modelRow) bool {
		return !r.foreign && r.Ranged && r.Outcome == jobs.OutcomeSuperseded && r.Reason == "definition replaced" && r.At >= at
	})
}

// answered says whether a follower has done with a tick: it ran, or is going, or a row says why it did not
// run. A success that leads to a run is another matter than a failure before it.
func (m *model) answered(j *modelJob, e Event, id string, runs bool) Word {
	one := e.Count == 1
	if one && m.remembers(j.Job, id) {
		return RelayDone
	}
	switch going := m.going(j.Job, func(_ string, r *modelRun) bool { return r.Request == "" && r.Tick == e.Tick }); {
	case one && going == "foreign":
		return "foreign"
	case one && going == "yes":
		return RelayDone
	}
	for _, r := range j.rows {
		ran := one && !r.Ranged && r.Request == "" && r.Tick == e.Tick
		passed := r.Ranged && r.Tick <= e.Tick && e.Until <= r.Until && (!runs || r.Reason != ReasonUpstream)
		if !r.foreign && (ran || passed) {
			return RelayDone
		}
	}
	return ""
}
