package jobs

import (
	"fmt"
	"strings"

	"github.com/escapement/escapement/jobs/spec"
)

// Overlap says what happens to a tick that is due while another run of the job has its lease, on any node.
type Overlap uint8

// The overlap policies; the zero value is the default.
const (
	// OverlapSkip records the tick as skipped. The default.
	OverlapSkip Overlap = iota
	// OverlapQueue waits for that run to end. Of the ticks that came due meanwhile the latest runs then; the others are
	// recorded as skipped.
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

// CatchUp says what happens to ticks that no node claimed when they were due. Ticks that are at most 10 s late run in order
// in any case.
type CatchUp uint8

// The catch-up policies; the zero value is the default.
const (
	// CatchUpLatest runs the newest of them and records the others as missed. The default.
	CatchUpLatest CatchUp = iota
	// CatchUpAll runs them one by one in order: the newest CatchUpMax, older ones are missed.
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

// OnCrash says what follows a run that its function did not end: its node died and the run was reaped, its lease was lost,
// or a drain cancelled it.
type OnCrash uint8

// The crash policies; the zero value is the default.
const (
	// OnCrashRecord records the outcome: abandoned, lost or cancelled. The default.
	OnCrashRecord OnCrash = iota
	// OnCrashRerun also runs the tick again, as a further attempt with a new token, at most Job.RerunMax times.
	OnCrashRerun
)

var onCrashWords = words("on_crash")

// String returns the word used in config files: record or rerun.
func (o OnCrash) String() string { return onCrashWords.word(uint8(o)) }

// MarshalText returns the word of o; an unknown value is an error.
func (o OnCrash) MarshalText() ([]byte, error) { return onCrashWords.marshal(uint8(o)) }

// UnmarshalText accepts exactly the words of String.
func (o *OnCrash) UnmarshalText(text []byte) error { return unmarshal(onCrashWords, text, o) }

// Placement says which node claims a tick first. It is a hint; the claim decides.
type Placement uint8

// The placements; the zero value is the default.
const (
	// PlacementOwner lets the job's owner, by hashing, claim first. The default.
	PlacementOwner Placement = iota
	// PlacementRace lets all nodes that may run the job claim at once. A dead node costs no time, and each tick costs a claim
	// of each node.
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
