package scheduler

import (
	"time"

	"github.com/escapement/escapement/jobs"
)

// Hooks receive the node's events; any of them may be nil. One goroutine of the node calls them,
// one event after another. Events of one run come in order. Between runs, and for skipped ticks,
// the order is approximate. Hooks should be quick: events wait in a queue of 1,024, and when it is
// full, further ones are dropped and counted (Node.HooksDropped), because the node never waits for
// hooks. A hook that panics is logged and counted, and the node goes on. When Run ends, queued
// events are delivered first, for at most 2 s.
type Hooks struct {
	// Due: the node is about to claim a tick. Another node may be granted it, and the tick is
	// claimed again when its job is held. The event comes up to 500 ms before the tick, see
	// Config.ClaimAhead.
	Due func(TickEvent)
	// Claimed: the node was granted a run. The run is handed back, and its function not called,
	// when the node drains, when the answer came too late for the lease or for a slot, or when too
	// few replicas confirm it.
	Claimed func(RunEvent)
	// Started: the function is about to be called for the first time in this run.
	Started func(RunEvent)
	// Settled: a run that this node was granted has ended, and its outcome was sent to Redis. Every
	// Started is followed by one, unless the node gave up on a function that ignores its context,
	// or the function returned a jobs.NodeFault and the run was handed back. A run that was
	// cancelled before it began has a Settled without a Started.
	Settled func(SettledEvent)
	// Skipped: this node recorded a range of ticks that will not run, as skipped, missed or paused. There is no event for ranges
	// that are recorded without a claim: ticks of a replaced definition, and ticks skipped because
	// the job followed did not succeed.
	Skipped func(SkippedEvent)
	// LeaseLost: a run lost its lease while its function was running. The function's context ended
	// at most a second before.
	LeaseLost func(RunEvent)
	// Stalled: a run made no progress for its job's StallAfter. With OnStallCancel its context ends
	// now.
	Stalled func(RunEvent)
	// Abandoned: this node recorded that another node's run has ended, because that node died or
	// was cut off and the lease lapsed.
	Abandoned func(AbandonedEvent)
	// Superseded: the node no longer claims a job, because another definition of it is stored.
	Superseded func(JobEvent)
}

// TickEvent is about a tick.
type TickEvent struct {
	Job  string
	Tick time.Time
	Node string // name of the node that reports it
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
	Lag     time.Duration // from the tick to the grant (Claimed; 0 for a grant before the tick), or to the start (other hooks)
}

// SettledEvent is about a run that has ended.
type SettledEvent struct {
	RunEvent
	Outcome  jobs.Outcome
	Reason   string // a few words, may be empty
	Error    string // "" for none; at most 2 KiB for each try
	Duration time.Duration
	Tries    int // 0 when the function was not called
	// Recorded reports whether Redis recorded this outcome. Otherwise Redis did not answer, or
	// another node had ended the run before and its outcome counts.
	Recorded bool
}

// AbandonedEvent is about a run whose node did not come back in time.
type AbandonedEvent struct {
	RunEvent
	Holder string // name of the node that had the run; Node is the node that recorded the loss
}

// SkippedEvent is about consecutive ticks that will not run.
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

// JoinHooks returns hooks that call the functions of each in order; nil ones are skipped. A
// panicking hook keeps the later hooks of its event from being called.
func JoinHooks(all ...*Hooks) *Hooks {
	var h Hooks
	for _, o := range all {
		if o == nil {
			continue
		}
		h.Due = joined(h.Due, o.Due)
		h.Claimed = joined(h.Claimed, o.Claimed)
		h.Started = joined(h.Started, o.Started)
		h.Settled = joined(h.Settled, o.Settled)
		h.Skipped = joined(h.Skipped, o.Skipped)
		h.LeaseLost = joined(h.LeaseLost, o.LeaseLost)
		h.Stalled = joined(h.Stalled, o.Stalled)
		h.Abandoned = joined(h.Abandoned, o.Abandoned)
		h.Superseded = joined(h.Superseded, o.Superseded)
	}
	return &h
}

// joined is the hook that calls first, then then; a nil hook costs nothing.
func joined[E any](first, then func(E)) func(E) {
	switch {
	case first == nil:
		return then
	case then == nil:
		return first
	}
	return func(e E) {
		first(e)
		then(e)
	}
}
