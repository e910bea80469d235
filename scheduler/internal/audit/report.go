package audit

import (
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs/spec"
)

// Kind is the kind of a finding.
type Kind string

// The kinds of findings.
const (
	KindLost          Kind = "LOST"          // a tick did not run and no reason is recorded
	KindDouble        Kind = "DOUBLE"        // an attempt of a tick, or a try of it, started more than once
	KindEarly         Kind = "EARLY"         // a run started before its tick
	KindLate          Kind = "LATE"          // a run started later than the bound, undisturbed
	KindPhantom       Kind = "PHANTOM"       // a line or a row of a tick of no schedule, or of a run that no operator requested
	KindContradiction Kind = "CONTRADICTION" // a tick ran and is recorded as not run, or is recorded twice
	KindUntrue        Kind = "UNTRUE"        // a recorded reason or outcome is not true
	KindUnwanted      Kind = "UNWANTED"      // a run started that the job's policies or an operator forbid
	KindToken         Kind = "TOKEN"         // tokens do not grow, or the guard judged them wrongly
	KindOverlap       Kind = "OVERLAP"       // a run started while another one of its job was going
	KindTold          Kind = "TOLD"          // a lease was granted while its former holder worked on under a context that had not ended
	KindMixed         Kind = "MIXED"         // shards of one tick have different shard counts
	KindBooks         Kind = "BOOKS"         // writes and books disagree, or the books are wrong in themselves
)

// The promises of docs/guarantees.md that a finding breaks, and Unsound, for books that contradict
// themselves or cannot be checked.
const (
	P1      = "P1" // an attempt of a tick is granted once
	P2      = "P2" // each tick has one recorded outcome
	P3      = "P3" // tokens of a job grow
	P4      = "P4" // a context ends before its lease is granted anew
	P6      = "P6" // a tick starts within the bound
	P7      = "P7" // a deploy keeps these promises
	Unsound = "books"
)

var promiseOf = map[Kind]string{
	KindLost: P2, KindDouble: P1, KindEarly: P1, KindLate: P6, KindPhantom: P2, KindContradiction: P2, KindUntrue: P2,
	KindUnwanted: P2, KindToken: P3, KindOverlap: P1, KindTold: P4, KindMixed: P7, KindBooks: Unsound,
}

// Verdict is the result of a due tick.
type Verdict string

// The verdicts. A tick that started more than once is judged by its first start.
const (
	Satisfied  Verdict = "satisfied"  // started in time
	Delayed    Verdict = "delayed"    // started later
	Missed     Verdict = "missed"     // recorded as missed
	Skipped    Verdict = "skipped"    // recorded as skipped
	Paused     Verdict = "paused"     // recorded as paused
	Superseded Verdict = "superseded" // recorded as superseded
	Unstarted  Verdict = "unstarted"  // granted, and the run ended before its function was called
	Pending    Verdict = "pending"    // not accounted for yet, and young enough for that
	Trimmed    Verdict = "trimmed"    // older than the recorded history
	Vanished   Verdict = "vanished"   // no start, no record
)

// Finding is a violation with its evidence.
type Finding struct {
	Kind    Kind   `json:"-"`
	Job     string `json:"job"`
	Promise string `json:"promise"` // P1 to P7, or Unsound
	What    string `json:"what"`
	// Evidence are the records concerned, rendered; only for findings from the books alone.
	Evidence []string  `json:"evidence"`
	Tick     time.Time `json:"-"` // zero for a finding about no single tick
	latest   int64     // the latest instant concerned, ms; 0: of no instant
}

// Before reports whether the finding concerns only instants before t.
func (f Finding) Before(t time.Time) bool { return f.latest != 0 && f.latest < t.UnixMilli() }

// String returns kind, job, tick and evidence, in one line.
func (f Finding) String() string {
	if f.Tick.IsZero() {
		return fmt.Sprintf("%-13s %s: %s", f.Kind, f.Job, f.What)
	}
	return fmt.Sprintf("%-13s %s %s: %s", f.Kind, f.Job, instantText(f.Tick), f.What)
}

// NewFinding returns a finding of a kind, for harnesses with more evidence than a Case has.
func NewFinding(kind Kind, job string, tick time.Time, format string, args ...any) Finding {
	return Finding{Kind: kind, Job: job, Promise: promiseOf[kind], Tick: tick, What: fmt.Sprintf(format, args...)}
}

// Report is the result of Check.
type Report struct {
	Findings []Finding       // by job, in the order of the case
	Verdicts map[Verdict]int // each due tick once
	Ticks    int             // due ticks, and possibly due ones that left a trace
	Runs     int             // first starts seen outside
	Stale    int             // lines that the guard refused
	WorstLag time.Duration   // of all first attempts by schedule, disturbed or not
	Excused  int             // faults around a Disturbance that Loses: counted, not findings
}

// instantText renders an instant to the millisecond, or finer where the rest is not zero.
func instantText(t time.Time) string {
	if t.Nanosecond()%1e6 != 0 {
		return t.UTC().Format("2006-01-02T15:04:05.000000000Z")
	}
	return t.UTC().Format(spec.TimeLayout)
}

func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
