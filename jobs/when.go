package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/escapement/escapement/jobs/spec"
)

// MaxResult is the largest result of a run, in bytes, so that those of all jobs that a job may follow make a payload.
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
		own := slices.Clone(text)
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

var whenWords = words("when")

// String returns the word used in config files: succeeded, failed or any.
func (w When) String() string { return whenWords.word(uint8(w)) }

// MarshalText returns the word of w; an unknown value is an error.
func (w When) MarshalText() ([]byte, error) { return whenWords.marshal(uint8(w)) }

// UnmarshalText accepts exactly the words of String.
func (w *When) UnmarshalText(text []byte) error { return unmarshal(whenWords, text, w) }

func (j Job) checkAfter(f *faults) {
	if j.Schedule != "" && len(j.After) > 0 {
		f.add("after", "%q does not go with the schedule %q: one of them says when the job runs; keep that one",
			clip(strings.Join(j.After, ", ")), clip(j.Schedule))
	}
	for i, name := range j.After {
		switch {
		case !spec.IsName(name):
			f.add("after", "%q is not a job name; %s", clip(name), nameForm)
		case slices.Contains(j.After[:i], name):
			f.add("after", "%q stands there twice; name it once", name)
		}
	}
}
