package ledger

import (
	"strings"

	"github.com/google/uuid"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

//go:generate go run ./gen

// The records' layouts are tables, in gen/records.go. Their readers and writers, here and in the
// scripts, are generated from these tables.

// Entry is the ledger's record of one job.
type Entry struct {
	Job       string
	Cursor    int64 // earliest tick not accounted for, ms; 0 when the schedule has no more
	Digest    string
	Revision  string
	Token     locking.Token // the last one granted; 0 when none was
	HolderRun string        // id of the run that holds the job, leased or pending
	Base      int64         // where the recorded chain begins, ms
	Last      int64         // latest instant ever accounted for, ms; 0 for none
	// Pause holds the ticks that are recorded as paused. It stays until the cursor is behind it.
	Pause Window
	// Busy is from the grant to the end of the last run of a job with overlap queue or replace.
	Busy Window
	// Ticks before ReattemptUntil may have run before a rewind; granted again, they are attempt
	// Reattempt.
	ReattemptUntil int64
	Reattempt      int
	Counts         map[jobs.Outcome]int64 // of ticks and runs that ended so, since the job was first registered
	// Restored is the latest tick whose shard or later attempt was lost in a failover and restored
	// by its node: up to that tick the history may lack attempts, or have them in another order. 0
	// for none.
	Restored int64
	// Ran is, of a job with MaxRuns, how many of its ticks were granted.
	Ran int64
	// Won is when the last run succeeded whose row has left the history, ms; 0 for none.
	Won int64
}

// RunState is where a run stands before its end.
//
//	            claim                 settle, reap
//	RunPending ──────► RunLeased ───────────────────► row of the history
//	    ▲  ▲                │ unclaim, reap with attempts left
//	    │  └────────────────┘
//	    │ one for each shard                 last shard's end
//	RunOpenTick ────────────────────────────────────► row of the history
type RunState uint8

// The states of a run.
const (
	RunPending  RunState = iota // waits for a node
	RunLeased                   // granted to a node
	RunOpenTick                 // a tick of a sharded job, until its last shard has ended
)

// Run is a run that has not ended, or an open tick of a sharded job.
type Run struct {
	ID, Job        string
	Tick           int64
	Shard, Shards  int
	Attempt        int
	Token          locking.Token
	Node, NodeName string
	Until, TTL     int64 // ms
	Beat           int64
	Prev, Next     int64 // the chain's link that this run fills; 0 for none
	Trigger        string
	Request        string // the run id of a person's request, when it is another one
	Granted        int64  // ms; for a pending run, when it may start
	Overlap        string // s, q, r or a: the job's policy when it was granted
	Attempts       int    // how often the tick may be granted before a crash ends it
	ReservesJob    bool   // pending: the job is held for it, because it was granted before
	TickID         string // the open tick whose shard this is; "" for a run that holds the job by itself
	Param          string // the shard's parameter
	Payload        []byte
	// IsOpenTick: an open tick of a sharded job. Left is the number of its shards that have
	// not ended for good.
	IsOpenTick bool
	Left       int
}

// State is where the run stands.
func (r Run) State() RunState {
	switch {
	case r.IsOpenTick:
		return RunOpenTick
	case r.Token == 0:
		return RunPending
	}
	return RunLeased
}

// Pending reports whether the run is not granted yet.
func (r Run) Pending() bool { return r.State() == RunPending }

// Row is one record of history: a run that ended, or a range of ticks that did not run.
type Row struct {
	Job        string
	Prev, Next int64 // cursor before and after the step; 0 for none
	At         int64 // when it was recorded or ended, ms
	Tick       int64
	Outcome    jobs.Outcome
	Reason     string
	// Of a range: its last tick and the number of ticks. Count is 0 for a run.
	Until, Count int64
	Ranged       bool
	// Note belongs to the reason of a range: the schedule that was replaced, or the outcome of the
	// upstream's tick.
	Note string

	Shard, Shards, Attempt, Tries int
	Highest                       int // of a sharded tick: the highest attempt of a shard
	Run                           string
	Token                         locking.Token
	Node, NodeName                string
	Trigger, Request              string
	TickID, Param                 string // of a shard: its tick's id, and its parameter
	IsTick                        bool   // a sharded tick, with the worst of its shards' outcomes; no run
	Started                       int64
	Late                          string // a report that came after the outcome: "succeeded 1763726400123"
	Error                         string
}

// ParseEntry reads a job's entry.
func ParseEntry(job, record string) (Entry, error) {
	e := Entry{Job: job}
	err := e.ReadEntry(record)
	return e, err
}

// ParseRun reads the record of a granted run.
func ParseRun(run, record string) (Run, error) {
	l := Run{ID: run}
	err := l.ReadRun(record)
	return l, err
}

// ParsePending reads a record of waiting: a pending run, or an open tick.
func ParsePending(run, record string) (Run, error) {
	l := Run{ID: run}
	if l.IsOpenTick = strings.HasPrefix(record, "1T|"); l.IsOpenTick {
		err := l.ReadTick(record)
		return l, err
	}
	err := l.ReadPending(record)
	return l, err
}

// ParseRow reads a row of a job's history.
func ParseRow(job, record string) (Row, error) {
	r := Row{Job: job}
	if r.Ranged = strings.HasPrefix(record, "1|S|"); r.Ranged {
		err := r.ReadRange(record)
		return r, err
	}
	err := r.ReadRow(record)
	if r.IsTick = strings.HasPrefix(record, "1|T|"); r.IsTick {
		r.Highest, r.Tries = r.Tries, 0
	}
	return r, err
}

// NextAttemptID is the id under which a run goes on: its next attempt, or the run itself after it
// was handed back. The id follows from the old one, so that all callers name the same run.
func NextAttemptID(run string) string { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(run)).String() }

// handBacks is how often a run may be handed back and is still found by its first id.
const handBacks = 16

// LaterAttemptIDs are the ids of a run that was handed back again and again.
func LaterAttemptIDs(run string) []string {
	ids := make([]string, handBacks)
	for i := range ids {
		run = NextAttemptID(run)
		ids[i] = run
	}
	return ids
}

// Window is a span of Redis' time in ms: from From up to, not including, To. A To of 0 has no end;
// the zero Window holds nothing.
type Window struct{ From, To int64 }

// Holds reports whether an instant lies in the window.
func (w Window) Holds(ms int64) bool { return w.From != 0 && ms >= w.From && (w.To == 0 || ms < w.To) }

// GrantedText is the record of a lease from the job on, as granted.
func (r Run) GrantedText() string {
	r.Until, r.Beat = 0, 0
	return strings.TrimPrefix(r.runText(), "1|0|0|")
}
