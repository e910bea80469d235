package scheduler

import (
	"time"

	"github.com/escapement/escapement/jobs"
)

// Hooks are told what the node does; any of them may be nil. All are called from one goroutine of
// the node, one event after another. Hooks of one run are called in the order of its events. Between
// runs, and for passed ticks, the order is approximate. They may take their time but should not: events wait in a queue of 1,024, and when that is full, further ones are
// dropped and counted (Node.HooksDropped), for the node itself never waits. A hook that panics is logged
// and counted, and the node goes on. When Run ends, what is queued is delivered first, for at
// most 2 s.
type Hooks struct {
	// Due: the node is about to ask for a tick. Another node may be granted it, and the same tick is
	// asked for again when the answer was that its job is held. It comes up to 500 ms before the tick, see Config.ClaimAhead.
	Due func(TickEvent)
	// Claimed: the node was granted a run. Its function may still not be called: when the node drains,
	// the answer came so late that the lease is over or that other runs have all slots, or too few replicas
	// confirm it, the run is handed back.
	Claimed func(RunEvent)
	// Started: the function is about to be called for the first time in this run.
	Started func(RunEvent)
	// Settled: a run that this node was granted has ended, and Redis was told, or could not be. Every
	// Started is followed by one, unless the node gave up on a function that ignores its context;
	// without Started it comes for a run that was cancelled before it began.
	Settled func(SettledEvent)
	// Missed: this node recorded a range of ticks of a job that will not run. What is recorded without a claim
	// is not told: ticks of a replaced definition, and those skipped because the job followed did not succeed.
	Missed func(SkippedEvent)
	// LeaseLost: the lease of a run was lost while its function was going, whose context has ended a second ago at most.
	LeaseLost func(RunEvent)
	// Abandoned: this node recorded that a run will not end: its lease lapsed, for the node that had it died or was cut off.
	Abandoned func(AbandonedEvent)
	// Superseded: the node claims a job no more, because another definition of it is the stored one.
	Superseded func(JobEvent)
}

// TickEvent is about a tick.
type TickEvent struct {
	Job  string
	Tick time.Time
	Node string // name of the node that tells
}

// RunEvent is about a run.
type RunEvent struct {
	Job     string
	Tick    time.Time
	Run     string // its id
	Shard   int    // from 0
	Shards  int    // at least 1
	Attempt int
	Token   int64
	Node    string
	Trigger jobs.Trigger
	Lag     time.Duration // from the tick to the grant (Claimed), 0 when that came ahead of it, or to the start (the others)
}

// SettledEvent is about a run that has ended.
type SettledEvent struct {
	RunEvent
	Outcome  jobs.Outcome
	Reason   string // few words, may be empty
	Error    string // "" when there was none; of each try 2 KiB at most
	Duration time.Duration
	Tries    int // 0 when its function was not called
	// Recorded says that Redis took this end. Else it did not answer, or somebody else had ended the run
	// before: then that end counts.
	Recorded bool
}

// AbandonedEvent is about a run whose node did not come back in time.
type AbandonedEvent struct {
	RunEvent
	Holder string // name of the node that had the run; Node is the one that found it
}

// SkippedEvent is about ticks in a row that will not run.
type SkippedEvent struct {
	Job         string
	First, Last time.Time
	Count       int64
	Outcome     jobs.Outcome // skipped, missed or paused
	Reason      string
	Node        string
}

// JobEvent is about a job on this node.
type JobEvent struct {
	Job  string
	Why  string
	Node string
}

// HooksDropped is how many events the hooks did not get, because the queue was full, and how many made
// one panic.
func (n *Node) HooksDropped() int64 { return n.events.missing.Load() }
