package ops

import (
	"errors"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// FormatTime formats an instant as JSON has it: RFC 3339 in UTC with milliseconds.
func FormatTime(t time.Time) string { return wire.Time(t) }

// Encode returns the JSON of a view, of a list of views, or of a Page, which is the list of its
// items: times in RFC 3339, UTC, with milliseconds, durations in milliseconds, tokens as strings, no
// list null. encoding/json writes other forms. A struct without any tag of JSON is refused.
func Encode(v any) ([]byte, error) {
	if p, is := v.(interface{ items() any }); is {
		v = p.items()
	}
	return wire.Encode(v)
}

// Decode reads the output of Encode. Unknown members are left out.
func Decode(text []byte, into any) error {
	if p, is := into.(Listing); is {
		into, _, _ = p.Part()
	}
	return wire.Decode(text, into)
}

// timeOf is an instant of the ledger, ms, in UTC; the zero time for 0.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// MarshalJSON returns the settings that have a value, as jobs.ParseDocument reads them, and the
// version of a job that is stored.
func (s StoredJob) MarshalJSON() ([]byte, error) {
	return settingsBeside(&s.Job, false, struct {
		Version time.Time `json:"version,omitempty"`
	}{s.Version})
}

// UnmarshalJSON reads settings, and a version. The error joins a *jobs.FieldError for each unknown
// key and each unreadable value; s has the other values.
func (s *StoredJob) UnmarshalJSON(text []byte) error {
	var version time.Time
	var bad error
	j, err := jobs.ParseDocument(text, func(key, value *spec.Node) bool {
		if key.Text != "version" {
			return false
		}
		if value.Kind != spec.NodeNull {
			at, err := wire.ParseTime(value.Text)
			if err != nil {
				bad = &jobs.FieldError{Field: "version", Msg: "is not " + spec.Instant.String() + "; leave it out: the store gives each change a version"}
			}
			version = at
		}
		return true
	})
	*s = StoredJob{Job: j, Version: version}
	return errors.Join(err, bad)
}

// jobState is a JobView without its methods, whose JSON has everything but the settings.
type jobState JobView

// MarshalJSON returns all settings, with 0, "", [], {} or null for no value, and the state of the
// job in the same object.
func (v JobView) MarshalJSON() ([]byte, error) { return settingsBeside(&v.Job, true, jobState(v)) }

// UnmarshalJSON reads the output of MarshalJSON. Unknown keys are left out: a newer version may
// have more.
func (v *JobView) UnmarshalJSON(text []byte) error {
	j, err := jobs.ParseShown(text)
	if err != nil {
		return err
	}
	var state jobState
	err = wire.Decode(text, &state)
	*v = JobView(state)
	v.Job = j
	return err
}

// settingsBeside returns one JSON object with the settings of a job, and the members of another
// object behind them.
func settingsBeside(j *jobs.Job, all bool, other any) ([]byte, error) {
	settings, err := jobs.Settings.Encode(j, all)
	if err != nil {
		return nil, err
	}
	beside, err := wire.Encode(other)
	if err != nil || len(beside) == len("{}") {
		return settings, err
	}
	if len(settings) == len("{}") {
		return beside, nil
	}
	return append(append(settings[:len(settings)-1], ','), beside[1:]...), nil
}
