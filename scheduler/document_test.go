package scheduler_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/scheduler/ops"
)

// wholeJob has a value for each setting but after and when, which do not go with a schedule.
func wholeJob() jobs.Job {
	return jobs.Job{
		Name: "a", Handler: "report", Payload: []byte(`{"n":1.50}`), ManagedBy: "tenants", Schedule: "0 6 * * *", TimeZone: "Europe/Berlin", Overlap: jobs.OverlapQueue,
		CatchUp: jobs.CatchUpAll, CatchUpMax: 3, StartWithin: time.Minute, OnCrash: jobs.OnCrashRerun, RerunMax: 2, Timeout: time.Hour,
		StallAfter: time.Minute, OnStall: jobs.OnStallCancel, TTL: 9 * time.Second,
		Retry: jobs.Retry{Max: 2, Backoff: time.Second, MaxBackoff: time.Minute, Timeout: time.Second, On: jobs.RetryOtherNode}, Shards: 2, Params: []string{"x", "y"}, Placement: jobs.PlacementRace,
		Labels: map[string]string{"disk": "ssd"}, Limit: jobs.Limit{Group: "db", Max: 3}, Guard: "paper", Expect: jobs.Expect{SuccessWithin: 26 * time.Hour},
		Except: []string{"2026-12-24"}, Only: []string{"2026-12-01..2026-12-31"},
		StartAt: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), EndAt: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), Jitter: time.Minute, MaxRuns: 7,
	}
}

// The JSON of a stored job and of a job's view make the same job again, in the dialect of
// config.yaml.
func TestSettingsInJSON(t *testing.T) {
	j, version := wholeJob(), time.Date(2026, 11, 28, 6, 0, 0, 7e6, time.UTC)
	text, err := json.Marshal(ops.StoredJob{Job: j, Version: version})
	if err != nil || !strings.HasPrefix(string(text), `{"name":"a","schedule":"0 6 * * *",`) || !strings.Contains(string(text), `"timeout":"1h","stall_after":"1m"`) ||
		!strings.HasSuffix(string(text), `,"version":"2026-11-28T06:00:00.007Z"}`) {
		t.Errorf("%s, %v", text, err)
	}
	var stored ops.StoredJob
	if err := json.Unmarshal(text, &stored); err != nil || !stored.Version.Equal(version) {
		t.Errorf("%v: %s", err, stored.Version)
	}
	next := version
	view := ops.JobView{Job: j, Next: next, Owner: "a1", Revision: "abc", Counts: map[jobs.Outcome]int64{jobs.OutcomeSucceeded: 3}}
	if text, err = json.Marshal(view); err != nil {
		t.Fatal(err)
	}
	var shown ops.JobView
	if err := json.Unmarshal(text, &shown); err != nil || shown.Owner != "a1" || shown.Next.String() != next.String() || shown.Counts[jobs.OutcomeSucceeded] != 3 {
		t.Errorf("%+v, %v", shown, err)
	}
	for _, s := range spec.All() {
		if !jobs.Settings.Given(&j, s) && s.Name != "after" && s.Name != "when" {
			t.Errorf("%s is not tried", s.Name)
		}
	}
	for _, again := range []jobs.Job{stored.Job, shown.Job} {
		if differ := jobs.Settings.Diff(&j, &again); len(differ) > 0 {
			t.Errorf("differs in %v: %s", differ, text)
		}
	}
}

// A view shows the settings without a value too, beside what only a view has, and is read again
// without them.
func TestAllSettingsOfAView(t *testing.T) {
	j := jobs.Job{Name: "a", After: []string{"b"}, Retry: jobs.Retry{Max: 1}}
	text, err := json.Marshal(ops.JobView{Job: j})
	for _, want := range []string{`"name":"a","schedule":""`, `"start_at":null`, `"retry":{"max":1,"backoff":null,`, `"limit":null`, `"after":["b"],"when":"succeeded"`, `"next":null`, `"paused":false`} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s, %v", text, want, err)
		}
	}
	var again ops.JobView
	if err := json.Unmarshal([]byte(strings.Replace(string(text), `{`, `{"newer":[1],`, 1)), &again); err != nil || len(jobs.Settings.Diff(&j, &again.Job)) > 0 {
		t.Errorf("%+v, %v", again.Job, err)
	}
	if err := json.Unmarshal([]byte(`{"name": "a", "overlap": "sometimes", "ttl": "9s"}`), &again); err != nil || again.Job.TTL != 9*time.Second {
		t.Errorf("a newer version's word: %+v, %v", again.Job, err)
	}
}

// Every unreadable setting of a stored job is named in the refusal.
func TestStoredJobIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`{"name": "a", "payload": {"a": 1.50}, "after": "b", "retry": {"max": 1}, "version": null}`: "",
		`{"handlr": "a", "ttl_ms": 15000, "retry": {"backoff_ms": 1, "max": "x"}, "version": "x"}`: `handlr: unknown key; did you mean handler
ttl_ms: unknown key; a duration has its unit: write ttl: 15s
retry.backoff_ms: unknown key; a duration has its unit: write backoff: 1ms
retry.max: want a whole number, found the text "x"
version: is not an instant with its offset, such as 2026-12-24T08:00:00Z; leave it out: the store gives each change a version`,
		`{"timeout": 3, "except": "2026-12-24"}`: "timeout: 3 has no unit; did you mean 3s\nexcept: want a list of texts, found the text \"2026-12-24\"",
		`[]`:                                     "job: want a section of settings, found a list",
		`{"name":"a","name":""}`:                 `job: line 1: the key "name" stands there twice; keep one`,
	} {
		var s ops.StoredJob
		err := json.Unmarshal([]byte(text), &s)
		if got := errorText(err); got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
		if faults := ops.FaultsOf(err); len(faults) != strings.Count(want, ": unknown")+strings.Count(want, "want ")+strings.Count(want, "no unit")+strings.Count(want, "version: is")+strings.Count(want, "twice") {
			t.Errorf("%s: %v", text, faults)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
