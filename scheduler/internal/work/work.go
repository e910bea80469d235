// Package work holds what the roles of a node hand to each other: jobs, batches of claims, and
// granted runs.
//
//	agenda ── Batch ──► lane ── Grant ──► runner ── report ──► lane
//	   ▲                   │                                  │
//	   └─ Batch, answered ─┴──────────────── recorded ────────┘
package work

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// Job is a job of the node, as it was registered. It does not change.
type Job struct {
	jobs.Job
	Schedule *jobs.Schedule // nil for a job that follows another
	Def      jobs.Definition
	Digest   string
	Part     int
	Index    int // among the node's jobs; breaks ties
}

// Attempts is how often one tick may be granted until a crash ends it.
func (j *Job) Attempts() int {
	switch {
	case j.OnCrash != jobs.OnCrashRerun:
		return 1
	case j.Retry.On == jobs.RetryOtherNode: // a try is an attempt
		return 1 + j.RerunMax + j.Retry.Max
	}
	return 1 + j.RerunMax
}

// StartBy is the instant (ms) by which a pending run must start, 0 for no limit. Start_within
// limits a run that follows another job's tick, and a tick that was handed back before it began.
func (j *Job) StartBy(p *ledger.Run) int64 {
	follows := p.Trigger == jobs.TriggerAfter.String()
	switch {
	case j.StartWithin == 0 || p.TickID != "":
		return 0
	case follows && !p.ReservesJob:
		return p.Granted + j.StartWithin.Milliseconds()
	case !follows && p.Prev != 0: // a further attempt is no step of the cursor
		return p.Tick + j.StartWithin.Milliseconds()
	}
	return 0
}

// Grant is a granted run on its way to its function.
type Grant struct {
	Job            *Job
	Lease          ledger.Run
	Epoch          string    // id of the epoch in which it was granted
	HandBackReason string    // why the run is handed back instead of begun; "": it is begun
	FirstSent      time.Time // just before the first request for it
	Suspended      time.Duration
	FirstTTL       time.Duration // how long the lease lasts until its first renewal
	StartAt        int64         // when the run is to begin, ms of Redis' time; 0: at once
	WasPending     bool          // the run was pending: its grant may arrive twice
}

// SettleListener receives the ledger's answer to a report, or the reason why there is none.
type SettleListener interface {
	Settled(r settle.Report, word ledger.Status, err error)
}

// Millis is an instant in ms since 1970; 0 for the zero time.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// TriggerOf reads a run's trigger. An unknown one reads as schedule; the record keeps the text.
func TriggerOf(l ledger.Run) jobs.Trigger { return triggers[l.Trigger] }

var triggers = func() map[string]jobs.Trigger {
	all := make(map[string]jobs.Trigger)
	for t := jobs.TriggerSchedule; t <= jobs.TriggerBackfill; t++ {
		all[t.String()] = t
	}
	return all
}()
