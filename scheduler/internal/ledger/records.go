package ledger

import (
	"strings"

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

func parseEntry(job, record string) (Entry, error) {
	e := Entry{Job: job}
	err := e.readEntry(record)
	return e, err
}

func parseRun(run, record string) (Run, error) {
	l := Run{ID: run}
	err := l.readRun(record)
	return l, err
}

// parsePending reads a record of waiting: a pending run, or an open tick.
func parsePending(run, record string) (Run, error) {
	l := Run{ID: run}
	if l.IsOpenTick = strings.HasPrefix(record, "1T|"); l.IsOpenTick {
		err := l.readTick(record)
		return l, err
	}
	err := l.readPending(record)
	return l, err
}

func parseRow(job, record string) (Row, error) {
	r := Row{Job: job}
	if r.Ranged = strings.HasPrefix(record, "1|S|"); r.Ranged {
		err := r.readRange(record)
		return r, err
	}
	err := r.readRow(record)
	if r.IsTick = strings.HasPrefix(record, "1|T|"); r.IsTick {
		r.Highest, r.Tries = r.Tries, 0
	}
	return r, err
}
