package audit

import (
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Case is everything that is judged together.
type Case struct {
	Jobs   []Job
	Writes []Write
	Grants []Grant // in their order; nil: not seen
	Books  map[string]ledger.JobBooks
	// Events are outbox rows that were not delivered to a follower yet.
	Events    []ledger.Event
	Disturbed []Disturbance
	// Nodes are the names of all nodes. A disturbance that hit some of them excuses a late start only where it held
	// the job up: the others are there to take it (P6). Without Nodes it excuses any.
	Nodes []string
	Read  time.Time // when the books were read
	Ended time.Time // when the last node had ended: what came due after Read may have run, and need not; zero: nothing did

	Within  time.Duration // P6: how late a run may start when nothing is disturbed; 0: 2 s
	Settle  time.Duration // how long after a disturbance its effects may last
	CatchUp time.Duration // a tick is missed only if it, or the one at the head of its row, was overdue by more; 0: 10 s
	Skew    time.Duration // by how much an instant that a node estimated may be off; 0: 1 s
	// Crowded says that nodes may be short of slots: then no start is late.
	Crowded bool
	// Stepped says that Redis' clock was stepped: how late a tick was depends on which time is meant, so that the
	// policies which go by lateness are not judged. SetBack says that a step led back.
	Stepped, SetBack bool
}

func (c Case) withDefaults() Case {
	if c.Within == 0 {
		c.Within = 2 * time.Second
	}
	if c.CatchUp == 0 {
		c.CatchUp = 10 * time.Second
	}
	if c.Skew == 0 {
		c.Skew = time.Second
	}
	return c
}

// Job is what is known of a job beside the books: what a person would read off its configuration, and what people did.
type Job struct {
	Name     string
	Versions []Version // in order; one unless it was redeployed
	// Eligible are the nodes whose labels match the job's, when not all do. Not nil and empty: nobody can run it.
	Eligible []string
	// StartsOnly says that its runs write no End, so that how long they last is not known.
	StartsOnly bool

	Asked     []Request // runs by hand
	Reruns    []string  // ids of attempts that an operator asked for
	Cancelled []Cancel
	Pauses    []Span
	Backfills []Span // ranges of ticks that an operator had run beside the schedule
	Rewound   bool   // an operator set the cursor back
}

// Request names a run and when an operator asked for something of it, by the clock of the writes.
type Request struct {
	At  time.Time
	Run string
}

// Cancel is a run that an operator cancelled. Pending: before it was granted.
type Cancel struct {
	Request
	Pending bool
}

// Version is a job's definition for the time that it was deployed. Versions that hold the very same Schedule are one
// deployment of which several spans are certain; a deployment anew of the same text is parsed anew.
type Version struct {
	Schedule   *jobs.Schedule // nil for a job that follows another one
	Definition jobs.Definition
	// Certain is when the version is surely in force: each tick in it must be accounted for.
	// Possible is when it may be in force: each tick in it may run.
	Certain, Possible Span
}

// Span is a stretch of time. One without From holds nothing; one without Until has no end.
type Span struct {
	From, Until time.Time // Until is not in it
}

// Phase says which end of a try a write tells of.
type Phase string

// The phases.
const (
	Start Phase = "start"
	End   Phase = "end"
)

// Write is one line that a job's function wrote outside, when a try of a run started or ended.
type Write struct {
	No      int       // order of writing, from 1
	At      time.Time // by the outside's own clock
	Job     string
	Tick    time.Time
	Run     string
	Token   int64
	Node    string // the node's name, as in the records
	Attempt int
	Try     int    // from 1; 0: not known, and the job has no retries
	Shard   int    // which part of its tick it is, from 0
	Shards  int    // of how many; 0 or 1: the tick is not split
	Trigger string // schedule, catch_up, manual, rerun, after, backfill
	Phase   Phase
	Failed  bool // an End: the function returned an error, or panicked
	Refused bool // the guard refused it: it had seen a greater token of the same fence
}

// String tells the line whole.
func (w Write) String() string {
	refused := ""
	if w.Refused {
		refused = ", refused"
	}
	return fmt.Sprintf("line %d: %s of %s tick %s%s attempt %d try %d run %s token %d on %s at %s%s",
		w.No, w.Phase, w.Job, instantText(w.Tick), w.part(), w.Attempt, w.Try, w.Run, w.Token, w.Node, instantText(w.At), refused)
}

// part names a line's shard, for people.
func (w Write) part() string {
	if w.Shards < 2 {
		return ""
	}
	return fmt.Sprintf(" shard %d of %d", w.Shard, w.Shards)
}

// Grant is a run's grant, seen on the wire at the instant at which it was made.
type Grant struct {
	At            time.Time
	Job, Run      string
	Tick          int64 // ms
	Token         int64
	Shard, Shards int
	Of            string // the open tick that it is a shard of
	Request       string // what was asked for by hand; "": by schedule
	Allowed       bool   // granted under overlap: allow
	// Working are the runs of the job that were at work at that instant, under contexts that had not ended, of those
	// that Redis cannot have forgotten.
	Working []string
}

// Disturbance is a span in which a fault acted, so that ticks near it may be late or recorded as not run.
type Disturbance struct {
	Span
	What  string   // "drain" lets runs end as cancelled
	Nodes []string // names of those it hit; none: everybody, Redis itself
	Job   string   // the only job that it hit; "": all
	// Lossy says that Redis has lost acknowledged writes, whether what comes of that is excused or not.
	Lossy bool
	// Loses says that Redis may have lost acknowledged writes (emptied, rolled back). From is then the instant of the
	// oldest write that may be lost. P1 and P2 are not promised for the runs around it; tokens (P3) still are.
	Loses bool
	// Struck is when a Redis went that came back empty. What came due from then on is promised again: P2 where some node that
	// knows the jobs lived through it, P1 too where all did.
	Struck              time.Time
	SomeLived, AllLived bool
}
