package jobs

// Outcome is the recorded end of a tick or of a run. The zero value is not an outcome and cannot be
// written.
//
//	           ┌─► succeeded · failed · timed_out · cancelled    settled by its own node
//	running ───┼─► lost                                         its lease ended before the function did
//	           └─► abandoned                                    reaped by another node
//	(never ran)  ─► skipped · missed · paused · superseded
type Outcome uint8

// The outcomes.
const (
	// OutcomeRunning means granted and not settled yet.
	OutcomeRunning Outcome = iota + 1
	// OutcomeSucceeded means that the function returned nil.
	OutcomeSucceeded
	// OutcomeFailed means that the function returned an error or panicked.
	OutcomeFailed
	// OutcomeTimedOut means that the job's timeout passed.
	OutcomeTimedOut
	// OutcomeCancelled means that an operator, a replacement or a drain ended the run.
	OutcomeCancelled
	// OutcomeLost means that the lease could not be renewed; the node ended the run's context at
	// the deadline.
	OutcomeLost
	// OutcomeAbandoned means that the node did not report, the lease lapsed, and another node
	// reaped the run.
	OutcomeAbandoned
	// OutcomeSkipped means not run because of overlap, or of the job that it follows.
	OutcomeSkipped
	// OutcomeMissed means not run because no node claimed it in time.
	OutcomeMissed
	// OutcomePaused means not run because the job was paused.
	OutcomePaused
	// OutcomeSuperseded means not run because the definition was replaced.
	OutcomeSuperseded
)

var outcomeWords = enum{"outcome", []string{"", "running", "succeeded", "failed", "timed_out", "cancelled",
	"lost", "abandoned", "skipped", "missed", "paused", "superseded"}}

// String returns the word used in JSON and in the ledger, such as timed_out.
func (o Outcome) String() string { return outcomeWords.word(uint8(o)) }

// MarshalText returns the word of o; the zero value and unknown values are errors.
func (o Outcome) MarshalText() ([]byte, error) { return outcomeWords.marshal(uint8(o)) }

// UnmarshalText accepts exactly the words of String.
func (o *Outcome) UnmarshalText(text []byte) error { return unmarshal(outcomeWords, text, o) }

// Ran reports whether the tick was granted to a node, so that the function may have
// been called.
func (o Outcome) Ran() bool { return o >= OutcomeRunning && o <= OutcomeAbandoned }

// Trigger is the reason for a run.
type Trigger uint8

// The triggers.
const (
	// TriggerSchedule is the zero value: the tick was due.
	TriggerSchedule Trigger = iota
	// TriggerCatchUp is a missed tick that is run later, by the job's CatchUp.
	TriggerCatchUp
	// TriggerManual is a run by hand, or by a program.
	TriggerManual
	// TriggerRerun is a further attempt of a tick, by the job's OnCrash or an operator.
	TriggerRerun
	// TriggerAfter means that the jobs which it follows have ended the same tick as the job waits for.
	TriggerAfter
	// TriggerBackfill is a tick of a range that an operator has run beside the schedule.
	TriggerBackfill
)

var triggerWords = enum{"trigger", []string{"schedule", "catch_up", "manual", "rerun", "after", "backfill"}}

// String returns the word used in JSON and in ESCAPEMENT_TRIGGER.
func (t Trigger) String() string { return triggerWords.word(uint8(t)) }

// MarshalText returns the word of t; an unknown value is an error.
func (t Trigger) MarshalText() ([]byte, error) { return triggerWords.marshal(uint8(t)) }

// UnmarshalText accepts exactly the words of String.
func (t *Trigger) UnmarshalText(text []byte) error { return unmarshal(triggerWords, text, t) }
