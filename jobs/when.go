package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxAfter is how many jobs a job may follow.
const MaxAfter = 16

// MaxResult is the largest result of a run, in bytes, so that those of MaxAfter jobs make a payload.
const MaxResult = 4 << 10

// SetResult keeps data, JSON of at most MaxResult bytes, for the jobs that follow this one: when the run succeeds, it is the payload of
// their runs of the tick. The last call of the last try counts. Data that cannot be kept is a *FieldError, as is that of a shard: the
// tick of several shards has no result.
func (r *Run) SetResult(data []byte) error {
	bad := func(format string, args ...any) error {
		return &FieldError{Field: "result", Msg: fmt.Sprintf(format, args...)}
	}
	switch text := compact(data); {
	case r.info.Shards > 1:
		return bad("a shard has none; store it elsewhere, under the tick and the shard")
	case !json.Valid(data) || !utf8.Valid(data):
		return bad("is no JSON in UTF-8")
	case len(text) > MaxResult:
		return bad("%d bytes are more than %d; store it elsewhere and pass its address", len(text), MaxResult)
	default:
		own := slices.Clone([]byte(text))
		r.result.Store(&own)
		return nil
	}
}

// Result returns what SetResult kept; nil without.
func (r *Run) Result() []byte {
	if p := r.result.Load(); p != nil {
		return slices.Clone(*p)
	}
	return nil
}

// When says after which ends of a tick a job with After runs.
//
//	end of the upstream's tick                        succeeded   failed   any
//	succeeded                                         runs        -        runs
//	skipped, missed                                   -           -        runs
//	failed, timed_out, cancelled, lost, abandoned     -           runs     runs
//	paused, superseded                                -           -        -
//
// Where it does not run, its tick is recorded as skipped (upstream). Of several upstreams, all must have ended the tick: succeeded
// runs when all have succeeded, failed when one at least has failed, and any runs in every case. A tick that one of them was paused
// for, or that a deploy took away, runs in no case.
type When uint8

// The values of When; the zero value is the default.
const (
	// WhenSucceeded runs after ticks that succeeded. The default.
	WhenSucceeded When = iota
	// WhenFailed runs after ticks that ran and did not succeed: for an alert.
	WhenFailed
	// WhenAny runs after each tick, however it ended, also one that was missed or skipped: to clean up.
	WhenAny
)

var whenWords = enum{"when", []string{"succeeded", "failed", "any"}}

// String returns the word used in config files: succeeded, failed or any.
func (w When) String() string { return whenWords.word(uint8(w)) }

// MarshalText returns the word of w; an unknown value is an error.
func (w When) MarshalText() ([]byte, error) { return whenWords.marshal(uint8(w)) }

// UnmarshalText accepts exactly the words of String.
func (w *When) UnmarshalText(text []byte) error { return unmarshal(whenWords, text, w) }

// Upstreams are the jobs that a definition follows. One name with the default When is a string in JSON, as every version knows
// it. Anything else is a list: a node of an older version then refuses the definition, and never takes the job for one that
// follows successes.
type Upstreams struct {
	Names  []string
	listed bool
}

func upstreams(names []string, w When) Upstreams {
	return Upstreams{Names: slices.Clone(names), listed: len(names) > 0 && (len(names) > 1 || w != WhenSucceeded)}
}

// String returns the names with commas.
func (u Upstreams) String() string { return strings.Join(u.Names, ", ") }

// IsZero reports whether there are none, which JSON leaves out.
func (u Upstreams) IsZero() bool { return len(u.Names) == 0 }

// MarshalJSON returns a string, or a list of strings.
func (u Upstreams) MarshalJSON() ([]byte, error) {
	if !u.listed {
		return json.Marshal(u.String())
	}
	return json.Marshal(u.Names)
}

// UnmarshalJSON accepts a string and a list of strings.
func (u *Upstreams) UnmarshalJSON(text []byte) error {
	var one string
	if err := json.Unmarshal(text, &one); err == nil {
		*u = Upstreams{}
		if one != "" {
			u.Names = []string{one}
		}
		return nil
	}
	err := json.Unmarshal(text, &u.Names)
	u.listed = len(u.Names) > 0
	return err
}

func (j Job) checkAfter(f *faults) {
	known := checkWord(f, whenWords, uint8(j.When))
	switch {
	case len(j.After) == 0:
		if known && j.When != WhenSucceeded {
			f.add("when", "%v is not used: the job follows no other one; leave it out, or name in after the job to run after", j.When)
		}
		return
	case len(j.After) > MaxAfter:
		f.add("after", "%d jobs are more than %d; put a job between that follows some of them", len(j.After), MaxAfter)
	case j.Schedule != "":
		f.add("after", "%q does not go with the schedule %q: one of them says when the job runs; keep that one",
			clip(strings.Join(j.After, ", ")), clip(j.Schedule))
	}
	for i, name := range j.After {
		switch {
		case !namePattern.MatchString(name):
			f.add("after", "%q is not a job name; %s", clip(name), nameForm)
		case slices.Contains(j.After[:i], name):
			f.add("after", "%q stands there twice; name it once", name)
		}
	}
}
