package model

import (
	"cmp"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// Ledger holds in memory what Redis holds, and answers one item of a call after another as the
// scripts do. Definitions, triggers, claims with shards and overlap, renewals, ends, lapsed leases
// and hand-backs are modelled. Pauses, followers, gates, promotions, moves, failovers and
// operators' calls are not.
type Ledger struct {
	us          int64  // Redis' clock, µs
	server      string // its id, as far as a token compares it
	skew, ahead int64  // ms
	keep        int    // rows of a job
	keepFor     int64  // ms
	off         Guard
	next        func(run string) string // the id of the next attempt

	jobs    map[string]*job
	defs    map[string]bool // digests of stored definitions
	cancels map[string]ledger.Cancel
	kept    map[string]string // outputs by run, payloads by "p:" and run
}

type job struct {
	ledger.Entry
	text   []byte
	server string // gave the last token
	runs   []*run // leased and pending runs, and open ticks
	rows   []row
	steps  []int64 // where the cursor stood before each of its steps
	first  int     // the first step that the history still shows
}

// row is a row of the history; step is the last step of the cursor that the row records, -1 for
// none.
type row struct {
	ledger.Row
	step int
}

type run struct {
	ledger.Run
	step int
	ends []jobs.Outcome // of an open tick: how its shards ended
	top  int            // the highest attempt of them
}

// New returns an empty ledger.
func New(c ledger.Config) *Ledger {
	return &Ledger{
		skew: c.MaxSkew.Milliseconds(), ahead: claim.AheadMax.Milliseconds(), keep: c.Keep, keepFor: c.KeepFor.Milliseconds(), next: ledger.NextAttemptID,
		jobs: map[string]*job{}, defs: map[string]bool{}, cancels: map[string]ledger.Cancel{}, kept: map[string]string{},
	}
}

// At sets Redis' clock, in µs, and the server's id.
func (m *Ledger) At(us int64, server string) { m.us, m.server = us, server }

func (m *Ledger) ms() int64 { return m.us / 1000 }

// on reports whether a rule is followed.
func (m *Ledger) on(g Guard) bool { return m.off != g }

// ClockOff reports whether a caller's idea of Redis' time, in ms, is wrong.
func (m *Ledger) ClockOff(now int64) bool { return max(m.ms()-now, now-m.ms()) > m.skew }

// Jobs returns the stored jobs, by name.
func (m *Ledger) Jobs() []query.Stored {
	var all []query.Stored
	for _, j := range m.jobs {
		e := j.Entry
		if e.Base = j.Cursor; j.first < len(j.steps) {
			e.Base = j.steps[j.first]
		}
		all = append(all, query.Stored{Entry: e, Definition: j.text})
	}
	slices.SortFunc(all, func(a, b query.Stored) int { return cmp.Compare(a.Job, b.Job) })
	return all
}

// InFlight returns every leased and pending run and every open tick, by id.
func (m *Ledger) InFlight() []ledger.Run {
	var all []ledger.Run
	for _, j := range m.jobs {
		for _, r := range j.runs {
			all = append(all, r.Run)
		}
	}
	slices.SortFunc(all, func(a, b ledger.Run) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// History is the rows of a job, oldest first.
func (m *Ledger) History(name string) (rows []ledger.Row) {
	if j := m.jobs[name]; j != nil {
		for _, row := range j.rows {
			rows = append(rows, row.Row)
		}
	}
	return rows
}

// Kept returns the texts stored beside the rows: outputs and payloads.
func (m *Ledger) Kept() map[string]string { return m.kept }

// Cancels returns the stored requests to end a run, by run.
func (m *Ledger) Cancels() map[string]ledger.Cancel { return m.cancels }

// leased is the run of that id that has a lease, nil for none.
func (j *job) leased(id string) *run {
	if r := j.find(id); r != nil && r.Token != 0 {
		return r
	}
	return nil
}

// waiting is the pending run or open tick of that id, nil for none.
func (j *job) waiting(id string) *run {
	if r := j.find(id); r != nil && r.Token == 0 {
		return r
	}
	return nil
}

// tick is the open tick of that id, nil for none.
func (j *job) tick(id string) *run {
	if r := j.find(id); r != nil && r.IsOpenTick {
		return r
	}
	return nil
}

func (j *job) find(id string) *run {
	for _, r := range j.runs {
		if r.ID == id {
			return r
		}
	}
	return nil
}

// holder is the run, or the open tick, that holds the job; nil while that run is pending.
func (j *job) holder() *run {
	if r := j.leased(j.HolderRun); r != nil {
		return r
	}
	return j.tick(j.HolderRun)
}

func (j *job) remove(r *run) {
	j.runs = slices.DeleteFunc(j.runs, func(other *run) bool { return other == r })
}

// row is the row of a run.
func (j *job) row(id string) *row {
	i := slices.IndexFunc(j.rows, func(row row) bool { return row.Run == id && !row.Ranged })
	if i < 0 {
		return nil
	}
	return &j.rows[i]
}

// move moves the cursor.
func (j *job) move(to int64) {
	j.steps = append(j.steps, j.Cursor)
	j.Cursor = to
}

// token is the next token of a job.
func (m *Ledger) token(j *job) locking.Token {
	const guard = 60_000_000
	if j.server == m.server || !m.on(TokenGuard) {
		j.Token = max(j.Token+1, m.us)
	} else {
		j.Token = max(j.Token+1_000_000, m.us+guard)
	}
	j.server = m.server
	return j.Token
}

// Trigger makes a pending run, or finds the run of an earlier copy of the call.
func (m *Ledger) Trigger(name string, t operate.TriggerRequest) (string, error) {
	j := m.jobs[name]
	if j == nil {
		return "", ledger.ErrUnknownJob
	}
	same := func(run, request string) bool { return run == t.Run || request == t.Run }
	if slices.ContainsFunc(j.runs, func(r *run) bool { return same(r.ID, r.Request) }) ||
		slices.ContainsFunc(j.rows, func(row row) bool { return same(row.Run, row.Request) }) {
		return t.Run, nil
	}
	at := cmp.Or(t.At, m.ms())
	j.runs = append(j.runs, &run{step: -1, Run: ledger.Run{
		ID: t.Run, Job: name, Tick: at, Shards: 1, Attempt: 1, Trigger: "manual",
		Request: t.Run, Granted: at, Payload: append([]byte{}, t.Payload...),
	}})
	return t.Run, nil
}
