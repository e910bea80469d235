package scheduler_test

import (
	"errors"
	"testing"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// What is wrong in a stored job's JSON is told with the setting, and with what the setting takes.
func TestParseStoredView(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": "a", "payload": {"a": 1.50}, "after": "b", "retry": {"max": 1}}`: "",
		`{"handlr": "a"}`:                      "handlr: is no setting of a stored job; did you mean handler",
		`{"timeZone": "a"}`:                    "timeZone: is no setting of a stored job; did you mean time_zone",
		`{"time-zone": 7, "handler": "h"}`:     "time-zone: is no setting of a stored job; did you mean time_zone",
		`{"start_within": "3s"}`:               "start_within: is no setting of a stored job; did you mean start_within_ms",
		`{"colour": "red"}`:                    "colour: is no setting of a stored job; leave it out, or correct its name",
		`{"retry": {"backof": 1}}`:             "retry.backof: is no setting of a stored job; did you mean retry.backoff_ms",
		`{"retry": 3}`:                         "retry: is a JSON number; write an object",
		`{"retry": {"max": "x"}}`:              "retry.max: is a JSON string; write a whole number",
		`{"retry": {"backoff_ms": "1m"}}`:      "retry.backoff_ms: is a JSON string; write a whole number of milliseconds",
		`{"timeout_ms": "soon"}`:               "timeout_ms: is a JSON string; write a whole number of milliseconds",
		`{"timeout_ms": 1.5}`:                  "timeout_ms: is a JSON number; write a whole number of milliseconds",
		`{"except": "2026-12-24"}`:             "except: is a JSON string; write a list of texts",
		`{"after": {"a": 1}}`:                  "after: is a JSON object; write a list of texts",
		`{"labels": ["a"]}`:                    "labels: is a JSON array; write an object of texts",
		`{"handler": 7}`:                       "handler: is a JSON number; write a text",
		`{"params": [1]}`:                      "params: is a JSON number; write a text",
		`[]`:                                   `job: is no JSON object; write {"handler": ...}`,
		`{"start_at": "soon", "handler": "x"}`: `start_at: `,
	} {
		_, err := scheduler.ParseStoredView([]byte(text))
		var f *jobs.FieldError
		switch {
		case want == "" && err == nil:
		case want == "" || !errors.As(err, &f) || err.Error() != want && (want != "start_at: " || f.Field != "start_at"):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}
