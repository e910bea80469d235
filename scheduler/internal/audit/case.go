package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// Case is all evidence that is judged together.
type Case struct {
	Jobs   []Job
	Writes []Write
	Grants []Grant // in order; nil: not observed
	Books  map[string]query.JobSnapshot
	// Events are outbox rows that were not delivered to a follower yet.
	Events    []ledger.Event
	Disturbed []Disturbance
	// Nodes are the names of all nodes. A disturbance of some nodes excuses a late start only where
	// it held up the job, because the other nodes take over the tick (P6). Without Nodes it excuses
	// any late start.
	Nodes []string
	Read  time.Time // when the books were read
	Ended time.Time // when the last node had ended: ticks due after Read may have run, and need not; zero: none was due

	Within  time.Duration // P6: how late a run may start when nothing is disturbed; 0: 2 s
	Settle  time.Duration // how long after a disturbance its effects may last
	CatchUp time.Duration // a tick is missed only if it, or the first tick of its row, was overdue by more; 0: 10 s
	Skew    time.Duration // largest error of an instant that a node estimated; 0: 1 s
	// Crowded: nodes may be short of slots, so no start is late.
	Crowded bool
	// Stepped: Redis' clock was stepped. A tick's lateness is then ambiguous, so policies that
	// depend on lateness are not judged. SetBack: a step led back.
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

// Job is the evidence about a job beside the books: its configuration, and the actions of
// operators.
type Job struct {
	Name     string
	Versions []Version // in order; one unless it was redeployed
	// Eligible are the nodes whose labels match the job's, when not all do. Not nil and empty: no
	// node can run the job.
	Eligible []string
	// StartsOnly: the job's runs write no End, so their durations are unknown.
	StartsOnly bool

	Asked     []Request // runs by hand
	Reruns    []string  // ids of attempts that an operator requested
	Cancelled []Cancel
	Pauses    []Span
	Backfills []Span // ranges of ticks that an operator had run beside the schedule
	Rewound   bool   // an operator set the cursor back
}

// Request is an operator's request: the run's name and the time, by the clock of the writes.
type Request struct {
	At  time.Time
	Run string
}

// Cancel is a run that an operator cancelled. Pending: before it was granted.
type Cancel struct {
	Request
	Pending bool
}

// Version is a job's definition while it was deployed. Versions with the same Schedule pointer are
// one deployment with several certain spans; a new deployment of the same text has a Schedule of
// its own.
type Version struct {
	Schedule   *jobs.Schedule // nil for a job that follows another one
	Definition jobs.Definition
	// Certain: the version is surely in force, and each tick in the span must be accounted for.
	// Possible: the version may be in force, and each tick in the span may run.
	Certain, Possible Span
}

// Span is a stretch of time. Without From it is empty; without Until it has no end.
type Span struct {
	From, Until time.Time // Until is not in it
}

// Phase is the end of a try that a write reports: its start or its end.
type Phase string

// The phases.
const (
	Start Phase = "start"
	End   Phase = "end"
)

// Write is one line that a job's function wrote to an outside receiver when a try started or ended.
type Write struct {
	No      int       // order of writing, from 1
	At      time.Time // by the receiver's own clock
	Job     string
	Tick    time.Time
	Run     string
	Token   int64
	Node    string // the node's name, as in the records
	Attempt int
	Try     int    // from 1; 0: unknown, and the job has no retries
	Shard   int    // index of the shard, from 0
	Shards  int    // number of shards; 0 or 1: the tick is not split
	Trigger string // schedule, catch_up, manual, rerun, after, backfill
	Phase   Phase
	Failed  bool // an End: the function returned an error, or panicked
	Refused bool // the guard refused the write: it had seen a greater token of the same fence
}

// String returns the whole line.
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

// Grant is a run's grant, observed on the wire at the instant of the grant.
type Grant struct {
	At            time.Time
	Job, Run      string
	Tick          int64 // ms
	Token         int64
	Shard, Shards int
	Of            string // a shard's open tick
	Request       string // id of the request by hand; "": by schedule
	Allowed       bool   // granted under overlap: allow
	// Working are the job's runs at work at that instant under contexts that had not ended, without
	// the runs that Redis may have forgotten.
	Working []string
}

// Disturbance is a span in which a fault acted, so that ticks near it may be late or recorded as
// not run.
type Disturbance struct {
	Span
	What  string   // "drain" lets runs end as cancelled
	Nodes []string // names of the nodes that were hit; none: every node, and Redis
	Job   string   // the only job that was hit; "": all
	// Lossy: Redis has lost acknowledged writes, whether or not the consequences are excused.
	Lossy bool
	// Loses: Redis may have lost acknowledged writes (emptied, rolled back). From is then the
	// instant of the oldest write that may be lost. P1 and P2 are not promised for the runs around
	// it; tokens (P3) still are.
	Loses bool
	// Struck is when a Redis that came back empty went away. For ticks due from then on, P2 holds
	// again where at least one node with the jobs lived through the loss, and P1 too where all
	// nodes did.
	Struck              time.Time
	SomeLived, AllLived bool
}

// acts reports whether a disturbance, or its aftermath, fell between two instants, both included.
func (c *Case) acts(d Disturbance, from, to time.Time) bool {
	if to.Before(from) { // the clock was set back between the two
		from, to = to, from
	}
	return !d.From.IsZero() && !d.From.After(to) && (d.Until.IsZero() || !d.Until.Add(c.Settle).Before(from))
}

// disturbed reports whether a disturbance acted between two instants. Which nodes were hit does not
// matter: the ticks of an absent node go to other nodes.
func (c *Case) disturbed(from, to time.Time) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool { return c.acts(d, from, to) })
}

// calm reports whether the cluster was undisturbed for long enough between two instants. enough
// returns the end of a long enough stretch that begins at an instant.
func (c *Case) calm(from, end time.Time, enough func(time.Time) time.Time) bool {
	begins := []time.Time{from}
	for _, d := range c.Disturbed {
		if over := d.Until.Add(c.Settle + 1); !d.Until.IsZero() && over.After(from) {
			begins = append(begins, over)
		}
	}
	return slices.ContainsFunc(begins, func(at time.Time) bool {
		until := enough(at)
		return until.Before(end) && !c.disturbed(at, until)
	})
}

// struck reports whether a disturbance between two instants hit the node of this name or id, or
// every node. drained: of disturbances that hit every node, only a drain counts, because only a
// drain cancels runs.
func (c *Case) struck(from, to time.Time, node, id string, drained bool) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool {
		everybody := len(d.Nodes) == 0 && d.Job == "" && (!drained || strings.Contains(d.What, "drain"))
		hit := everybody || slices.Contains(d.Nodes, node) || slices.Contains(d.Nodes, id)
		return hit && c.acts(d, from, to)
	})
}

// lossNear reports whether Redis may have lost its records of an instant, or of the time until
// Settle after it.
func (c *Case) lossNear(at time.Time) bool {
	return c.lossBetween(at, at.Add(c.Settle))
}

// lossy reports whether Redis has lost its records of the first instant before the second.
func (c *Case) lossy(from, to time.Time) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool { return d.Lossy && c.acts(d, from, to) })
}

// lossBetween reports whether Redis may have lost its records of the first instant before the
// second.
func (c *Case) lossBetween(from, to time.Time) bool {
	return slices.ContainsFunc(c.Disturbed, func(d Disturbance) bool { return d.Loses && c.acts(d, from, to) })
}

// lossAfter reports whether Redis may have lost its records of an instant before the books were
// read: an emptied Redis loses all earlier records.
func (c *Case) lossAfter(at time.Time) bool { return c.lossBetween(at, c.Read) }

// remembered reports whether nodes that lived through a loss know the lost records of a tick: all
// nodes (P1), or at least one (P2). Rows of ticks that were due before the loss are gone, so P2 is
// judged for later ticks only; the nodes do know that the earlier ones ran.
func (c *Case) remembered(at time.Time, all bool) bool {
	known := false
	for _, d := range c.Disturbed {
		if !d.Loses || !c.acts(d, at, c.Read) {
			continue
		}
		if d.Struck.IsZero() || !all && at.Before(d.Struck) || !d.SomeLived || all && !d.AllLived {
			return false
		}
		known = true
	}
	return known
}

// pausedAt reports whether the job was paused when a tick came due or when the tick was recorded:
// an overdue tick is recorded as paused too.
func (t *trial) pausedAt(tick, recorded time.Time) bool {
	return slices.ContainsFunc(t.job.Pauses, func(p Span) bool {
		return !p.From.After(recorded.Add(t.Skew)) && (p.Until.IsZero() || p.Until.Add(t.Skew).After(tick))
	})
}

// pausedBetween reports whether the job was paused at some time between two instants.
func (t *trial) pausedBetween(from, to time.Time) bool {
	return slices.ContainsFunc(t.job.Pauses, func(p Span) bool {
		return !p.From.After(to.Add(t.Skew)) && (p.Until.IsZero() || p.Until.Add(t.Settle).After(from))
	})
}
