package ledger

import (
	"fmt"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// model is the ledger's slow twin: the protocol of doc.go and of the scripts' headers in plain
// Go, in memory, one item after another, with nothing clever. It says what each call must be
// answered and what must then be stored.
type model struct {
	us      int64  // Redis' clock, µs
	runID   string // of the server
	server  string // the same, whole
	skew    int64
	keep    int
	keepFor int64

	jobs    map[string]*modelJob
	runs    map[string]*modelRun // leased
	waiting map[string]*modelRun // pending
	foreign map[string]bool      // "entry NAME", "run ID", "pending ID": records made unreadable

	kept      map[string]string // as keys.go has it
	cancels   map[string]Cancel
	pauses    map[string]Pause
	due       map[string]int64
	followers map[string][]string
	outbox    map[string]Event // by record
	told      map[string]int64 // by partition and id: until when it is remembered, ms
	gates     [tracePartitions]string
}

type modelJob struct {
	Entry
	text  []byte
	runID string // of the server that gave the last token
	rows  []modelRow

	former []string // digests that were replaced

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
	ends []jobs.Outcome // of an open tick: how its shards ended
	top  int            // and the highest attempt of them
}

func newModel(c Config) *model {
	c = c.withDefaults()
	return &model{
		skew: c.MaxSkew.Milliseconds(), keep: c.Keep, keepFor: c.KeepFor.Milliseconds(), jobs: map[string]*modelJob{},
		runs: map[string]*modelRun{}, waiting: map[string]*modelRun{}, foreign: map[string]bool{}, kept: map[string]string{},
		cancels: map[string]Cancel{}, pauses: map[string]Pause{}, due: map[string]int64{}, followers: map[string][]string{},
		outbox: map[string]Event{}, told: map[string]int64{},
	}
}

func (m *model) ms() int64 { return m.us / 1000 }

func (m *model) do(o op) reply {
	var out reply
	if o.timed() && max(m.ms()-o.now, o.now-m.ms()) > m.skew {
		out.err = fmt.Sprintf("clock %d believed %d", m.ms(), o.now)
		return out
	}
	if o.server != "" && o.server != m.server {
		out.err = "server"
		return out
	}
	if shut := m.refuses(o); shut != nil {
		out.err = failed(shut)
		return out
	}
	for _, a := range o.asserts {
		out.asserted = append(out.asserted, m.reassert(a))
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
		out.defined = append(out.defined, m.define(o, d))
	}
	switch o.kind {
	case "plant":
		m.plant(o.plant)
	case "raise":
		out.err = raise(&m.gates, o.raise)
	case "gate":
		m.gates[o.part] = o.gate
	}
	m.operate(o, &out)
	return out
}

// operate is what an operator asks for, and what belongs to jobs that follow others.
func (m *model) operate(o op, out *reply) {
	switch o.kind {
	case "trigger":
		out.run, out.err = m.trigger(o.job, o.trigger)
	case "cancel":
		out.word, out.err = m.cancel(o.job, o.run, o.pause.Author, o.pause.Reason)
	case "rerun":
		out.run, out.err = m.rerun(o.job, o.run)
	case "pause":
		out.err = m.pause(o.job, o.pause)
	case "resume":
		out.err = m.resume(o.job)
	case "rewind":
		out.word, out.err = m.rewind(o.rewind)
	case "remove":
		out.err = m.remove(o.job)
	case "follow", "unfollow":
		out.err = m.follow(o)
	case "relay":
		out.word = m.relay(o.event, o.job)
	case "relayed":
		delete(m.outbox, recordOf(o.event))
	case "postpone":
		if j := m.jobs[o.late.Job]; j != nil && !m.foreign["entry "+o.late.Job] && j.Cursor != 0 && m.due[j.Job] == o.late.Cursor {
			m.due[j.Job] = o.until
		}
	}
}

// job is a job that can be read, or why there is none.
func (m *model) job(name string) (*modelJob, string) {
	switch {
	case m.jobs[name] == nil:
		return nil, "unknown job"
	case m.foreign["entry "+name]:
		return nil, "foreign"
	}
	return m.jobs[name], ""
}

// count counts ticks and runs by how they ended.
func (j *modelJob) count(o jobs.Outcome, n int64) { j.Counts[o] += n }

// move moves the cursor and returns the number of the step.
func (j *modelJob) move(to int64) int {
	j.steps = append(j.steps, j.Cursor)
	j.Cursor = to
	return len(j.steps) - 1
}

// shed drops the windows that lie behind the cursor, a pause when its time is over as well.
func (j *modelJob) shed(ms int64) {
	behind := func(end int64) bool { return j.Cursor == 0 || end <= j.Cursor }
	if j.Pause.To != 0 && j.Pause.To <= ms && behind(j.Pause.To) {
		j.Pause = Window{}
	}
	if behind(j.Busy.To) {
		j.Busy = Window{}
	}
	if j.Cursor != 0 && behind(j.Again) {
		j.Again, j.AgainAttempt = 0, 0
	}
}

// stretch lets a pause that goes on begin with the cursor, if that was set to before it.
func (j *modelJob) stretch(ms int64) {
	if j.Cursor != 0 && j.paused(ms) {
		j.Pause.From = min(j.Pause.From, j.Cursor)
	}
}

// next is which attempt of a tick comes next when the cursor leads to it, or the tick of another job.
func (j *modelJob) next(tick int64) int {
	if tick < j.Again {
		return j.AgainAttempt
	}
	return 1
}

// token is the next token of a job.
func (m *model) token(j *modelJob) locking.Token {
	const guard = 60_000_000
	if j.runID == m.runID {
		j.Token = max(j.Token+1, m.us)
	} else {
		j.Token = max(j.Token+1_000_000, m.us+guard)
	}
	j.runID = m.runID
	return j.Token
}

func (m *model) renew(r locking.Renewal) locking.RenewAnswer {
	run := m.runs[r.Owner]
	if m.foreign["run "+r.Owner] {
		return locking.Unknown
	}
	if run == nil || r.Token != 0 && r.Token != run.Token {
		return locking.Gone
	}
	run.Until = m.ms() + r.TTL.Milliseconds()
	run.Beat++
	return locking.Renewed
}

func (m *model) plant(p plant) {
	if p.what == "row" {
		j := m.jobs[p.job]
		j.rows = append(j.rows, modelRow{step: -1, foreign: true}) // past the ledger, which trims nothing then
		return
	}
	m.foreign[p.what+" "+p.name] = !p.back
}
