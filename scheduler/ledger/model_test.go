package ledger

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// model is the ledger's slow twin: the protocol of doc.go and of the scripts' headers in plain
// Go, in memory, one item after another, with nothing clever. It says what each call must be
// answered and what must then be stored.
type model struct {
	us      int64  // Redis' clock, µs
	runID   string // of the server
	skew    int64
	keep    int
	keepFor int64

	jobs    map[string]*modelJob
	runs    map[string]*modelRun // leased
	waiting map[string]*modelRun // pending
	foreign map[string]bool      // "entry NAME", "run ID", "pending ID": records made unreadable
}

type modelJob struct {
	Entry
	text  []byte
	runID string // of the server that gave the last token
	rows  []modelRow

	steps []int64 // every step of the cursor, ever: where it stood before
	first int     // the first of them that the chain still has to show
}

type modelRow struct {
	Row
	step    int // the (last) step that this row records; -1 for none
	foreign bool
}

type modelRun struct {
	Lease
	step int
}

func newModel(c Config) *model {
	c = c.withDefaults()
	return &model{skew: c.MaxSkew.Milliseconds(), keep: c.Keep, keepFor: c.KeepFor.Milliseconds(), jobs: map[string]*modelJob{},
		runs: map[string]*modelRun{}, waiting: map[string]*modelRun{}, foreign: map[string]bool{}}
}

func (m *model) ms() int64 { return m.us / 1000 }

func (m *model) do(o op) reply {
	var out reply
	timed := o.kind == "claim" || o.kind == "reap" || o.kind == "define"
	if timed && max(m.ms()-o.now, o.now-m.ms()) > m.skew {
		out.err = fmt.Sprintf("clock %d believed %d", m.ms(), o.now)
		return out
	}
	for _, c := range o.claims {
		out.answers = append(out.answers, m.claim(o.by, c))
	}
	for _, r := range o.reports {
		out.words = append(out.words, m.settle(r))
	}
	for _, r := range o.renewals {
		out.renewed = append(out.renewed, m.renew(r))
	}
	for _, s := range o.seen {
		out.words = append(out.words, m.reap(s))
	}
	for _, r := range o.returns {
		out.words = append(out.words, m.unclaim(r))
	}
	for _, d := range o.defs {
		out.defined = append(out.defined, m.define(d))
	}
	switch o.kind {
	case "trigger":
		out.err = m.trigger(o.job, o.run, o.payload)
	case "plant":
		m.plant(o.plant)
	}
	return out
}

func (m *model) claim(by Claimer, c Claim) Answer {
	j := m.jobs[c.Job]
	switch {
	case m.foreign["entry "+c.Job]:
		return Answer{Verdict: Foreign}
	case j == nil:
		return Answer{Verdict: Unknown}
	}
	if r := m.runs[c.Run]; r != nil && !m.foreign["run "+c.Run] && j.Open == c.Run && r.Node == by.ID {
		a := Answer{Verdict: Granted, Token: r.Token, Left: millisOf(max(0, r.Until-m.ms()))}
		if c.Pending {
			a.Run = r.Lease
			a.Run.Run = ""
		}
		return a
	}
	if j.Digest != c.Digest {
		return Answer{Verdict: Superseded, Detail: j.Digest}
	}
	if c.Pending {
		return m.claimPending(by, j, c)
	}
	return m.claimTick(by, j, c)
}

func (m *model) claimTick(by Claimer, j *modelJob, c Claim) Answer {
	switch {
	case j.Cursor != c.From || j.Cursor == 0:
		return Answer{Verdict: Moved, Cursor: j.Cursor}
	case c.Tick > m.ms():
		return Answer{Verdict: Early}
	}
	if r := m.runs[j.Open]; j.Open != "" && r != nil && !m.foreign["run "+j.Open] && r.Granted > c.Tick {
		return Answer{Verdict: Held, Detail: j.Open}
	}
	if c.Missed > 0 {
		step := j.move(c.Tick)
		m.passed(j, step, Row{Prev: c.From, Next: c.Tick, Tick: c.From, Until: c.Until, Count: c.Missed, Outcome: jobs.OutcomeMissed, Reason: "late"})
	}
	step := j.move(c.Next)
	j.Last = c.Tick
	if j.Open != "" {
		m.passed(j, step, Row{Prev: c.Tick, Next: c.Next, Tick: c.Tick, Until: c.Tick, Count: 1, Outcome: jobs.OutcomeSkipped, Reason: "overlap"})
		return Answer{Verdict: Skipped, Cursor: j.Cursor}
	}
	r := &modelRun{step: step, Lease: Lease{Job: c.Job, Tick: c.Tick, Shards: 1, Attempt: 1, Prev: c.Tick, Next: c.Next,
		Trigger: c.Trigger.String(), Payload: []byte{}}}
	m.grant(by, j, c, r)
	return Answer{Verdict: Granted, Token: r.Token, Left: c.TTL}
}

func (m *model) claimPending(by Claimer, j *modelJob, c Claim) Answer {
	r := m.waiting[c.Run]
	switch {
	case m.foreign["pending "+c.Run]:
		return Answer{Verdict: Foreign}
	case r == nil:
		return Answer{Verdict: Moved, Cursor: j.Cursor}
	case r.Granted > m.ms():
		return Answer{Verdict: Early}
	case j.Open != "" && j.Open != c.Run:
		return Answer{Verdict: Held, Detail: j.Open}
	}
	delete(m.waiting, c.Run)
	m.grant(by, j, c, r)
	a := Answer{Verdict: Granted, Token: r.Token, Left: c.TTL, Run: r.Lease}
	a.Run.Run = ""
	return a
}

// grant leases a run, with the next token of its job.
func (m *model) grant(by Claimer, j *modelJob, c Claim, r *modelRun) {
	const guard = 60_000_000
	if j.runID == m.runID {
		j.Token = max(j.Token+1, m.us)
	} else {
		j.Token = max(j.Token+1_000_000, m.us+guard)
	}
	j.runID, j.Open = m.runID, c.Run
	ttl := c.TTL.Milliseconds()
	r.Run, r.Token, r.Node, r.NodeName, r.TTL, r.Until, r.Granted = c.Run, j.Token, by.ID, by.Name, ttl, m.ms()+ttl, m.ms()
	m.runs[c.Run] = r
}

func (m *model) settle(rep Report) Word {
	r := m.runs[rep.Run]
	switch {
	case r == nil:
		return m.settleLate(rep)
	case m.foreign["run "+rep.Run] || m.foreign["entry "+rep.Job]:
		return Strange
	}
	m.end(r, Row{At: rep.Ended, Outcome: rep.Outcome, Reason: strings.ReplaceAll(strings.ReplaceAll(rep.Reason, "|", "/"), "\n", " "),
		Started: rep.Started, Tries: rep.Tries, Error: rep.Error})
	return Settled
}

// settleLate answers a report about a run that is not in flight: by its row.
func (m *model) settleLate(rep Report) Word {
	j := m.jobs[rep.Job]
	if j == nil {
		return NoSuchRun
	}
	i := slices.IndexFunc(j.rows, func(row modelRow) bool { return row.Run == rep.Run })
	if i < 0 {
		return NoSuchRun
	}
	row := &j.rows[i]
	if row.Outcome == rep.Outcome {
		return Settled
	}
	if row.Late == "" {
		row.Late = fmt.Sprintf("%s %d", rep.Outcome, rep.Ended)
	}
	return Lost
}

// end takes a run out of flight and writes its row; how says what the run itself does not know.
func (m *model) end(r *modelRun, how Row) {
	j := m.jobs[r.Job]
	how.Job, how.Prev, how.Next, how.Tick, how.Shard, how.Shards, how.Attempt = r.Job, r.Prev, r.Next, r.Tick, r.Shard, r.Shards, r.Attempt
	how.Run, how.Token, how.Node, how.NodeName, how.Trigger, how.Request = r.Run, r.Token, r.Node, r.NodeName, r.Trigger, r.Request
	delete(m.runs, r.Run)
	j.Open = ""
	m.write(j, modelRow{Row: how, step: r.step})
}

func (m *model) renew(r locking.Renewal) locking.RenewAnswer {
	run := m.runs[r.Owner]
	if m.foreign["run "+r.Owner] {
		return locking.Unknown
	}
	if run == nil {
		return locking.Gone
	}
	run.Until = m.ms() + r.TTL.Milliseconds()
	run.Beat++
	return locking.Renewed
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
	}
	m.end(r, Row{At: m.ms(), Outcome: jobs.OutcomeAbandoned, Reason: "lease lapsed", Started: r.Granted})
	return Reaped
}

func (m *model) unclaim(back Return) Word {
	r := m.runs[back.Run]
	switch {
	case r == nil && m.waiting[back.Fresh] != nil:
		return Returned
	case r == nil:
		return Lost
	case m.foreign["run "+back.Run] || m.foreign["entry "+back.Job]:
		return Strange
	}
	delete(m.runs, back.Run)
	m.jobs[back.Job].Open = back.Fresh
	m.waiting[back.Fresh] = &modelRun{step: r.step, Lease: Lease{Run: back.Fresh, Job: r.Job, Tick: r.Tick, Shard: r.Shard, Shards: r.Shards,
		Attempt: r.Attempt, Prev: r.Prev, Next: r.Next, Trigger: r.Trigger, Request: r.Request, Granted: m.ms(), Payload: r.Payload}}
	return Returned
}

func (m *model) trigger(job, id string, payload []byte) string {
	j := m.jobs[job]
	switch {
	case j == nil:
		return "unknown job"
	case m.foreign["entry "+job]:
		return "foreign"
	case m.knows(j, id):
		return ""
	}
	m.waiting[id] = &modelRun{step: -1, Lease: Lease{Run: id, Job: job, Tick: m.ms(), Shards: 1, Attempt: 1, Trigger: "manual",
		Request: id, Granted: m.ms(), Payload: append([]byte{}, payload...)}}
	return ""
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

func (m *model) define(d Definition) Defined {
	j := m.jobs[d.Job]
	if m.foreign["entry "+d.Job] {
		return Defined{Word: "foreign", Text: []byte{}}
	}
	var word string
	text := []byte{}
	switch {
	case j == nil:
		word = "created"
		j = &modelJob{text: d.Text, Entry: Entry{Job: d.Job, Cursor: d.Cursor, Digest: d.Digest, Revision: d.Revision}}
		m.jobs[d.Job] = j
	case j.Digest == d.Digest:
		word = "same"
		j.Revision = max(j.Revision, d.Revision)
	case j.Digest != d.WasDigest || j.Cursor != d.WasCursor || d.Upcoming != 0 && d.Upcoming <= m.ms(),
		d.Cursor != 0 && (d.Cursor <= m.ms() || d.Cursor <= j.Last):
		word, text = "differs", j.text
	default:
		word = "replaced"
		m.replace(j, d)
	}
	return Defined{Word: word, Cursor: j.Cursor, Digest: j.Digest, Revision: j.Revision, Text: text, Last: j.Last}
}

func (m *model) replace(j *modelJob, d Definition) {
	was := j.Cursor
	row := Row{Job: j.Job, Ranged: true, Prev: was, Next: d.Cursor, At: m.ms(), Tick: was, Outcome: jobs.OutcomeSuperseded, Reason: "definition replaced"}
	if d.Count > 0 {
		row.Until, row.Count = d.Until, d.Count
		j.Last = d.Until
	}
	m.write(j, modelRow{Row: row, step: j.move(d.Cursor)})
	j.Digest, j.Revision, j.text = d.Digest, d.Revision, d.Text
}

// move moves the cursor and returns the number of the step.
func (j *modelJob) move(to int64) int {
	j.steps = append(j.steps, j.Cursor)
	j.Cursor = to
	return len(j.steps) - 1
}

// passed records ticks that did not run, in the last row if that says the same of those before.
func (m *model) passed(j *modelJob, step int, row Row) {
	if n := len(j.rows); n > 0 {
		tail := &j.rows[n-1]
		if tail.Ranged && tail.Next == row.Prev && tail.Outcome == row.Outcome && tail.Reason == row.Reason {
			tail.Next, tail.Until, tail.At, tail.step = row.Next, row.Until, m.ms(), step
			tail.Count += row.Count
			return
		}
	}
	row.Job, row.Ranged, row.At = j.Job, true, m.ms()
	m.write(j, modelRow{Row: row, step: step})
}

// write appends a row and trims: at every 16th, at most 64, never the newest.
func (m *model) write(j *modelJob, row modelRow) {
	j.rows = append(j.rows, row)
	n := len(j.rows)
	if n%16 != 0 {
		return
	}
	for dropped := 0; dropped < 64 && len(j.rows) > 1; dropped++ {
		old := j.rows[0]
		at := old.At
		if old.foreign {
			at = math.MaxInt64 // its age is not known
		}
		if len(j.rows) <= m.keep && at >= m.ms()-m.keepFor {
			return
		}
		j.first = max(j.first, old.step+1)
		j.rows = j.rows[1:]
	}
}

func (m *model) plant(p plant) {
	if p.what == "row" {
		j := m.jobs[p.job]
		j.rows = append(j.rows, modelRow{step: -1, foreign: true}) // past the ledger, which trims nothing then
		return
	}
	m.foreign[p.what+" "+p.name] = !p.back
}

// base is where the chain begins: before the first step that the books still show.
func (j *modelJob) base() int64 {
	if j.first < len(j.steps) {
		return j.steps[j.first]
	}
	return j.Cursor
}

// stored is what Jobs must read, by name; a foreign entry has nothing but its name.
func (m *model) stored() []Stored {
	var all []Stored
	for _, j := range m.jobs {
		e := j.Entry
		e.Base = j.base()
		if m.foreign["entry "+j.Job] {
			all = append(all, Stored{Entry: Entry{Job: j.Job}})
			continue
		}
		all = append(all, Stored{Entry: e, Definition: j.text})
	}
	slices.SortFunc(all, func(a, b Stored) int { return cmp.Compare(a.Job, b.Job) })
	return all
}

// open is what Open must read, by run.
func (m *model) open() []Lease {
	var all []Lease
	for what, set := range map[string]map[string]*modelRun{"run ": m.runs, "pending ": m.waiting} {
		for id, r := range set {
			if !m.foreign[what+id] {
				all = append(all, r.Lease)
			}
		}
	}
	slices.SortFunc(all, func(a, b Lease) int { return cmp.Compare(a.Run, b.Run) })
	return all
}

// history is what History must read of one job.
func (m *model) history(job string) (rows []Row, foreign int) {
	if j := m.jobs[job]; j != nil {
		for _, row := range j.rows {
			if row.foreign {
				foreign++
				continue
			}
			rows = append(rows, row.Row)
		}
	}
	return rows, foreign
}
