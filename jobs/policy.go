package jobs

import (
	"fmt"
	"strings"

	"github.com/escapement/escapement/jobs/spec"
)

// Overlap decides what happens to a tick that is due while another run of the job has its lease, on
// any node.
type Overlap uint8

// The overlap policies; the zero value is the default.
const (
	// OverlapSkip records the tick as skipped. The default.
	OverlapSkip Overlap = iota
	// OverlapQueue waits for the older run to end. Of the ticks that came due meanwhile the latest
	// runs then; the rest are recorded as skipped.
	OverlapQueue
	// OverlapReplace cancels that run with the cause ErrReplaced, and then does as OverlapQueue.
	OverlapReplace
	// OverlapAllow runs both at once. Each tick has a lease, and so a fence, of its own.
	OverlapAllow
)

var overlapWords = words("overlap")

// String returns the word used in config files: skip, queue, replace or allow.
func (o Overlap) String() string { return overlapWords.word(uint8(o)) }

// MarshalText returns the word of o; an unknown value is an error.
func (o Overlap) MarshalText() ([]byte, error) { return overlapWords.marshal(uint8(o)) }

// UnmarshalText accepts exactly the words of String.
func (o *Overlap) UnmarshalText(text []byte) error { return unmarshal(overlapWords, text, o) }

// CatchUp decides what happens to ticks that no node claimed when they were due. Ticks that are at
// most 10 s late run in order in any case.
type CatchUp uint8

// The catch-up policies; the zero value is the default.
const (
	// CatchUpLatest runs the newest of them and records the rest as missed. The default.
	CatchUpLatest CatchUp = iota
	// CatchUpAll runs the newest CatchUpMax one by one in order; older ticks are recorded as missed.
	CatchUpAll
	// CatchUpNone runs none; all are recorded as missed.
	CatchUpNone
)

var catchUpWords = words("catch_up")

// String returns the word used in config files: latest, all or none.
func (c CatchUp) String() string { return catchUpWords.word(uint8(c)) }

// MarshalText returns the word of c; an unknown value is an error.
func (c CatchUp) MarshalText() ([]byte, error) { return catchUpWords.marshal(uint8(c)) }

// UnmarshalText accepts exactly the words of String.
func (c *CatchUp) UnmarshalText(text []byte) error { return unmarshal(catchUpWords, text, c) }

// OnCrash decides what follows a run that its function did not end: its node died and the run was
// reaped, its lease was lost, or a drain cancelled it.
type OnCrash uint8

// The crash policies; the zero value is the default.
const (
	// OnCrashRecord records the outcome: abandoned, lost or cancelled. The default.
	OnCrashRecord OnCrash = iota
	// OnCrashRerun also runs the tick again, as a further attempt with a new token, at most
	// Job.RerunMax times.
	OnCrashRerun
)

var onCrashWords = words("on_crash")

// String returns the word used in config files: record or rerun.
func (o OnCrash) String() string { return onCrashWords.word(uint8(o)) }

// MarshalText returns the word of o; an unknown value is an error.
func (o OnCrash) MarshalText() ([]byte, error) { return onCrashWords.marshal(uint8(o)) }

// UnmarshalText accepts exactly the words of String.
func (o *OnCrash) UnmarshalText(text []byte) error { return unmarshal(onCrashWords, text, o) }

// Placement decides which node claims a tick first. It is a hint; the claim decides.
type Placement uint8

// The placements; the zero value is the default.
const (
	// PlacementOwner lets the job's owner, by hashing, claim first. The default.
	PlacementOwner Placement = iota
	// PlacementRace lets all nodes that may run the job claim at once. A dead node costs no time,
	// and each tick costs a claim of each node.
	PlacementRace
)

var placementWords = words("placement")

// String returns the word used in config files: owner or race.
func (p Placement) String() string { return placementWords.word(uint8(p)) }

// MarshalText returns the word of p; an unknown value is an error.
func (p Placement) MarshalText() ([]byte, error) { return placementWords.marshal(uint8(p)) }

// UnmarshalText accepts exactly the words of String.
func (p *Placement) UnmarshalText(text []byte) error { return unmarshal(placementWords, text, p) }

// enum is the word list of one enumerated type. An empty word marks a value without a
// name, such as the zero Outcome.
type enum struct {
	kind  string
	words []string
}

// words is the word list of a setting.
func words(setting string) enum { return enum{setting, spec.WordsOf(setting)} }

func (e enum) known(v uint8) bool { return int(v) < len(e.words) && e.words[v] != "" }

func (e enum) word(v uint8) string {
	if !e.known(v) {
		return fmt.Sprintf("%s(%d)", e.kind, v)
	}
	return e.words[v]
}

func (e enum) marshal(v uint8) ([]byte, error) {
	if !e.known(v) {
		return nil, fmt.Errorf("jobs: %s has no value %d", e.kind, v)
	}
	return []byte(e.words[v]), nil
}

// list names the words for an error text.
func (e enum) list() string {
	var known []string
	for _, w := range e.words {
		if w != "" {
			known = append(known, w)
		}
	}
	return strings.Join(known, ", ")
}

func unmarshal[T ~uint8](e enum, text []byte, into *T) error {
	for i, w := range e.words {
		if w != "" && w == string(text) {
			*into = T(i)
			return nil
		}
	}
	return fmt.Errorf("%s %q is not known; use one of %s", e.kind, text, e.list())
}

// RetryOn decides where a failed function is called again.
type RetryOn uint8

// The places of a further try; the zero value is the default.
const (
	// RetrySameNode calls it again inside the same run, under the same lease and token. The default.
	RetrySameNode RetryOn = iota
	// RetryOtherNode ends the run as failed and hands its tick to another node after the backoff,
	// as a further attempt with a new lease and token. When no other node takes it within some
	// seconds, the same node does.
	RetryOtherNode
)

var retryOnWords = words("retry.on")

// String returns the word used in config files: same_node or other_node.
func (r RetryOn) String() string { return retryOnWords.word(uint8(r)) }

// MarshalText returns the word of r; an unknown value is an error.
func (r RetryOn) MarshalText() ([]byte, error) { return retryOnWords.marshal(uint8(r)) }

// UnmarshalText accepts exactly the words of String.
func (r *RetryOn) UnmarshalText(text []byte) error { return unmarshal(retryOnWords, text, r) }

// OnStall decides what the node does with a run that made no progress for Job.StallAfter.
type OnStall uint8

// The stall policies; the zero value is the default.
const (
	// OnStallTell logs the run, and calls the hook Stalled. The default.
	OnStallTell OnStall = iota
	// OnStallCancel also ends the run's context with cause ErrStalled. The run is recorded as
	// cancelled, with the reason stalled.
	OnStallCancel
)

var onStallWords = words("on_stall")

// String returns the word used in config files: tell or cancel.
func (o OnStall) String() string { return onStallWords.word(uint8(o)) }

// MarshalText returns the word of o; an unknown value is an error.
func (o OnStall) MarshalText() ([]byte, error) { return onStallWords.marshal(uint8(o)) }

// UnmarshalText accepts exactly the words of String.
func (o *OnStall) UnmarshalText(text []byte) error { return unmarshal(onStallWords, text, o) }

// When decides after which ends of a tick a job with After runs.
//
//	end of the upstream's tick                        succeeded   failed   any
//	succeeded                                         runs        -        runs
//	skipped, missed                                   -           -        runs
//	failed, timed_out, cancelled, lost, abandoned     -           runs     runs
//	paused, superseded                                -           -        -
//
// Where the job does not run, its tick is recorded as skipped (upstream). A job with several
// upstreams waits until all of them have ended the tick: succeeded runs when all have succeeded,
// failed when at least one has failed, and any runs in every case. A tick for which one upstream
// was paused, or which a deploy removed, never runs.
type When uint8

// The values of When; the zero value is the default.
const (
	// WhenSucceeded runs after ticks that succeeded. The default.
	WhenSucceeded When = iota
	// WhenFailed runs after ticks that ran and did not succeed: for an alert.
	WhenFailed
	// WhenAny runs after each tick, whatever its outcome, also after a missed or skipped tick: to
	// clean up.
	WhenAny
)

var whenWords = words("when")

// String returns the word used in config files: succeeded, failed or any.
func (w When) String() string { return whenWords.word(uint8(w)) }

// MarshalText returns the word of w; an unknown value is an error.
func (w When) MarshalText() ([]byte, error) { return whenWords.marshal(uint8(w)) }

// UnmarshalText accepts exactly the words of String.
func (w *When) UnmarshalText(text []byte) error { return unmarshal(whenWords, text, w) }
