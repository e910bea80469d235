package jobs_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

type report struct {
	Name  string    `json:"name"`
	Since time.Time `json:"since"`
	Page  struct {
		Size int `json:"size"`
	} `json:"page"`
}

// TestTyped wants wrong payloads refused with the field, before the function is called and for
// good.
func TestTyped(t *testing.T) {
	for payload, want := range map[string]string{
		"":                                   "",
		`{}`:                                 "",
		`{"name": "a", "page": {"size": 3}}`: "",
		`{"name": 7}`:                        "payload.name: is a JSON number; its type is string",
		`{"page": {"size": "3"}}`:            "payload.page.size: is a JSON string; its type is int",
		`{"page": {"sise": 3}}`:              "payload.sise: is not a field of it; leave it out, or correct its name",
		`{"na\"me": 3}`:                      `payload.na"me: is not a field of it; leave it out, or correct its name`,
		`[1]`:                                "payload: is a JSON array; write an object with the fields name, since, page",
		`{"since": "yesterday"}`:             `payload: cannot be read: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`,
		`{"name": "a"} {}`:                   "payload: has text after its end; send one JSON value",
		`{"name": "a"`:                       "payload: cannot be read: unexpected EOF",
	} {
		called := false
		f := jobs.Typed(func(_ context.Context, run *jobs.Run, in report) error {
			called = true
			if (payload == "" || payload == "{}") != (in == report{}) {
				t.Errorf("%q of %s is read as %+v", payload, run.Job(), in)
			}
			return nil
		})
		err := f(t.Context(), jobs.NewRun(jobs.RunInfo{Job: "report", Payload: []byte(payload)}))
		if want == "" {
			if err != nil || !called {
				t.Errorf("%q: %v, called %v", payload, err, called)
			}
			continue
		}
		if fault := (*jobs.FieldError)(nil); err == nil || err.Error() != want || !jobs.IsPermanent(err) || !errors.As(err, &fault) || called {
			t.Errorf("%q: %v, called %v; want %s", payload, err, called, want)
		}
	}
	if err := (jobs.Job{Name: "a", Schedule: "@hourly", Func: jobs.Typed[report](nil), TTL: time.Minute, Shards: 1}).Validate(); err == nil {
		t.Error("no function is taken for one")
	}
}
