package jobs

// Outcome is the one recorded end of a tick or of a run. The zero value is not an
// outcome and cannot be written.
//
//	           ┌─► succeeded · failed · timed_out · cancelled    settled by its own node
//	running ───┼─► lost                                         it ran on after its lease was gone
//	           └─► abandoned                                    reaped by somebody else
//	(never ran)  ─► skipped · missed · paused · superseded
type Outcome uint8

// The outcomes.
const (
	// OutcomeRunning: granted and not settled yet.
	OutcomeRunning Outcome = iota + 1
	// OutcomeSucceeded: the function returned nil.
	OutcomeSucceeded
	// OutcomeFailed: the function returned an error or panicked.
	OutcomeFailed
	// OutcomeTimedOut: the job's timeout passed.
	OutcomeTimedOut
	// OutcomeCancelled: an operator, a replacement or a drain ended it.
	OutcomeCancelled
	// OutcomeLost: the lease could not be kept; the node stopped the run at its deadline.
	OutcomeLost
	// OutcomeAbandoned: the lease lapsed with no word from the node, and the run was reaped.
	OutcomeAbandoned
	// OutcomeSkipped: not run, because of overlap or of a job it depends on.
	OutcomeSkipped
	// OutcomeMissed: not run, because nobody could claim it in time.
	OutcomeMissed
	// OutcomePaused: not run, because the job was paused.
	OutcomePaused
	// OutcomeSuperseded: not run, because its definition was replaced.
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

// Trigger says why a run was granted.
type Trigger uint8

// The triggers.
const (
	// TriggerSchedule: its tick was due. The zero value.
	TriggerSchedule Trigger = iota
	// TriggerCatchUp: its tick was missed and is made up for.
	TriggerCatchUp
	// TriggerManual: a person or a program asked for it.
	TriggerManual
	// TriggerRerun: an earlier attempt of its tick ended, and the job's policy or an
	// operator wants another.
	TriggerRerun
	// TriggerAfter: the same tick of the job it follows has succeeded.
	TriggerAfter
)

var triggerWords = enum{"trigger", []string{"schedule", "catch_up", "manual", "rerun", "after"}}

// String returns the word used in JSON and in ESCAPEMENT_TRIGGER.
func (t Trigger) String() string { return triggerWords.word(uint8(t)) }

// MarshalText returns the word of t; an unknown value is an error.
func (t Trigger) MarshalText() ([]byte, error) { return triggerWords.marshal(uint8(t)) }

// UnmarshalText accepts exactly the words of String.
func (t *Trigger) UnmarshalText(text []byte) error { return unmarshal(triggerWords, text, t) }
