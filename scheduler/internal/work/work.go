// Package work is what the roles of a node hand to each other: its jobs, batches of claims on their way to
// Redis and back, and granted runs.
//
//	agenda ── Batch ──► lane ── Grant ──► runner ── report ──► lane
//	   ▲                   │                                  │
//	   └─ Batch, answered ─┴──────────────── recorded ────────┘
package work

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Job is a job of the node, as it was registered. It does not change.
type Job struct {
	jobs.Job
	Schedule *jobs.Schedule // nil for one that follows another job
	Def      jobs.Definition
	Digest   string
	Part     int
	Index    int // among the node's jobs; decides where nothing else does
}

// Attempts is how often one tick may be granted before a crash ends it.
func (j *Job) Attempts() int {
	if j.OnCrash == jobs.OnCrashRerun {
		return 1 + j.RerunMax
	}
	return 1
}

// Grant is a granted run on its way to its function.
type Grant struct {
	Job    *Job
	Lease  ledger.Lease
	Server string    // that granted it
	Back   string    // why the run is not begun but handed back; "": it is begun
	Asked  time.Time // before the first request for it was sent
	Slept  time.Duration
	First  time.Duration // how long its lease lasts until it is renewed
	At     int64         // when it is to begin, ms of Redis' time; 0: at once
	Waited bool          // it was pending: its grant may be heard of twice
}

// Settled is told what became of a report: the ledger's word, or why there is none.
type Settled interface {
	Settled(r ledger.Report, word ledger.Status, err error)
}

// Millis is an instant in ms since 1970; 0 for the zero time.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// TriggerOf reads a run's trigger. One that this version does not know reads as schedule; the record
// keeps its word.
func TriggerOf(l ledger.Lease) jobs.Trigger { return triggers[l.Trigger] }

var triggers = func() map[string]jobs.Trigger {
	all := make(map[string]jobs.Trigger)
	for t := jobs.TriggerSchedule; t <= jobs.TriggerAfter; t++ {
		all[t.String()] = t
	}
	return all
}()
