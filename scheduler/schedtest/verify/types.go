package verify

import (
	"fmt"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
)

// Phase says which end of a run a line of the sink tells of.
type Phase string

// The phases.
const (
	Start Phase = "start"
	End   Phase = "end"
)

// Write is one line of the sink: the work of a job as the outside world saw it.
type Write struct {
	No      int       // order of writing, from 1
	At      time.Time // by the sink's own clock
	Job     string
	Tick    time.Time
	Run     string
	Token   int64
	Node    string // the node's name, as in the records
	Attempt int
	Shard   int    // which part of its tick it is, from 0
	Shards  int    // of how many; 0 or 1: the tick is not split
	Trigger string // schedule, catch_up, manual
	Phase   Phase
	Refused bool // the guard at the sink refused it: it had seen a greater token of this job, or of this shard of it
}

// String tells the line whole.
func (w Write) String() string {
	refused := ""
	if w.Refused {
		refused = ", refused"
	}
	return fmt.Sprintf("line %d: %s of %s tick %s%s run %s token %d on %s at %s%s",
		w.No, w.Phase, w.Job, stamp(w.Tick), w.part(), w.Run, w.Token, w.Node, stamp(w.At), refused)
}

// manual says whether a person asked for the run, so that its tick is none of the schedule's.
func (w Write) manual() bool { return w.Trigger == manual }

// manual is the word of a run that a person asked for, in lines, rows and leases.
const manual = "manual"

// Job is what the verifier knows of a job: nothing but what a person would read off its config,
// and what was asked of it by hand.
type Job struct {
	Name     string
	Versions []Version // in order; one unless it was redeployed
	// Asked are the instants, by the sink's clock, just before each request for a run by hand,
	// also of one whose answer got lost. A manual start that nobody asked for is BLIND.
	Asked []time.Time
	// Overlaps says that runs may go on beside each other (overlap: allow).
	Overlaps bool
	// Shards is into how many parts a tick is split; of versions that differ the most, and then Reshards is true.
	Shards   int
	Reshards bool
	// StartsOnly says that its runs write no End, so that how long they last is not known.
	StartsOnly bool
}

// Version is a job's schedule for the time that it was deployed. Versions that hold the very same
// Schedule are one deployment of which several spans are certain; a deployment anew of the same text
// is parsed anew.
type Version struct {
	Schedule Schedule // of this package: Cron or Every
	// Certain is when the version is surely in force: each tick in it must be accounted for.
	// Possible is when it may be in force: each tick in it may run.
	Certain, Possible Span
}

// Span is a stretch of time. One without From holds nothing; one without Until has no end.
type Span struct {
	From, Until time.Time // Until is not in it
}

// Disturbance is a span in which a fault acted, so that ticks near it may be late or recorded as
// not run.
type Disturbance struct {
	Span
	What  string   // "drain" lets runs end as cancelled
	Nodes []string // names of those it hit; none: everybody, Redis itself
	Job   string   // the only job that it hit; "": all
	// Lossy says that Redis has lost acknowledged writes, whether what comes of that is excused or not.
	Lossy bool
	// Loses says that Redis may have lost acknowledged writes (emptied, rolled back). From is then
	// the instant of the oldest write that may be lost. P1 and P2 are not promised for the runs
	// around it; tokens (P3) still are.
	Loses bool
}

// Books are what the ledger recorded, read at the end.
type Books struct {
	Rows   map[string][]ledger.Row // by job, in order of recording
	Cursor map[string]time.Time    // by job: first tick not accounted for; zero: the schedule has no more
	Open   []ledger.Lease          // granted or pending, not ended
	Chain  []string                // what the ledger's own audit says is wrong
	// TrimmedBefore is, by job, where the recorded history begins: earlier ticks have no row any more.
	TrimmedBefore map[string]time.Time
}

// Case is everything that is to be judged together.
type Case struct {
	Jobs      []Job
	Writes    []Write
	Books     Books
	Disturbed []Disturbance
	// Nodes are the names of all nodes. A disturbance that hit some of them excuses a late start only where
	// it held the job up: the others are there to take it (P6). Without Nodes it excuses any.
	Nodes   []string
	Read    time.Time     // when the books were read
	Ended   time.Time     // when the last node had ended: what came due after Read may have run, and need not; zero: nothing did
	Within  time.Duration // P6: how late a run may start when nothing is disturbed; 0: 2 s
	Settle  time.Duration // how long after a disturbance its effects may last
	CatchUp time.Duration // a tick is missed only if it, or the one at the head of its row, was overdue by more; 0: 10 s
}

func (c Case) withDefaults() Case {
	if c.Within == 0 {
		c.Within = 2 * time.Second
	}
	if c.CatchUp == 0 {
		c.CatchUp = 10 * time.Second
	}
	return c
}

// Kind names what is wrong.
type Kind string

// The kinds of findings.
const (
	KindLost          Kind = "LOST"          // a tick did not run and nobody recorded why
	KindDouble        Kind = "DOUBLE"        // a tick started more than once
	KindEarly         Kind = "EARLY"         // a run started before its tick
	KindLate          Kind = "LATE"          // a run started later than the bound, undisturbed
	KindPhantom       Kind = "PHANTOM"       // a line or a row of a tick that no schedule asks for
	KindContradiction Kind = "CONTRADICTION" // a tick ran and is recorded as not run, or is recorded twice
	KindUntrue        Kind = "UNTRUE"        // a recorded reason is not true
	KindToken         Kind = "TOKEN"         // tokens do not grow, or the guard judged them wrongly
	KindOverlap       Kind = "OVERLAP"       // a run started while another one of its job was going
	KindBooks         Kind = "BOOKS"         // sink and books disagree, or the books are wrong in themselves
	KindMixed         Kind = "MIXED"         // shards of one tick tell different numbers of shards
	KindBlind         Kind = "BLIND"         // more starts than ticks and requests can explain
	KindDisagree      Kind = "DISAGREE"      // the books count other ticks as not run than the sink leaves over
)

// Verdict says what became of a due tick.
type Verdict string

// The verdicts. A tick that started more than once is judged by its first start.
const (
	Satisfied  Verdict = "satisfied"  // started in time
	Delayed    Verdict = "delayed"    // started later
	Missed     Verdict = "missed"     // recorded as missed
	Skipped    Verdict = "skipped"    // recorded as skipped
	Superseded Verdict = "superseded" // recorded as superseded
	Unstarted  Verdict = "unstarted"  // granted, and the run ended before its function was called
	Pending    Verdict = "pending"    // not accounted for yet, and young enough for that
	Trimmed    Verdict = "trimmed"    // older than the recorded history
	Vanished   Verdict = "vanished"   // no start, no record
)

// Finding is a violation with its evidence.
type Finding struct {
	Kind Kind
	Job  string
	Tick time.Time // zero when it is about no single tick
	What string
}

// String tells kind, job, tick and evidence, in one line.
func (f Finding) String() string {
	if f.Tick.IsZero() {
		return fmt.Sprintf("%-13s %s: %s", f.Kind, f.Job, f.What)
	}
	return fmt.Sprintf("%-13s %s %s: %s", f.Kind, f.Job, stamp(f.Tick), f.What)
}

// Report is the verifier's answer.
type Report struct {
	Findings []Finding       // by job, in the order of the case
	Verdicts map[Verdict]int // by identity, each due tick once
	Ticks    int             // due, and ones that were only possible but left a trace
	Runs     int             // starts at the sink
	Stale    int             // lines that the guard refused
	WorstLag time.Duration   // of all scheduled starts, disturbed or not
	Excused  int             // faults around a Disturbance that Loses: counted, not findings
}

// stamp is an instant to the millisecond, or finer where that would hide something.
func stamp(t time.Time) string {
	if t.Nanosecond()%1e6 != 0 {
		return t.UTC().Format("2006-01-02T15:04:05.000000000Z")
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z")
}

func instant(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
