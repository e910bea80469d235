package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// TestHTTPJob reads a call from a file and makes it.
func TestHTTPJob(t *testing.T) {
	asked := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		asked <- fmt.Sprint(r.Method, " ", r.URL, " ", string(body), " ", err, " ", r.Header.Get("X-Key"), " ", r.Header.Get("Fencing-Token"))
		w.WriteHeader(http.StatusConflict)
	}))
	defer server.Close()
	for expect, good := range map[string]bool{"2xx": false, "409": true} {
		l, err := load(source{file: write(t, fmt.Sprintf(`
jobs:
  - name: a
    schedule: "@hourly"
    http: {method: PUT, url: "%s/p?q=1", headers: {X-Key: hunter2}, body: hello, expect: %s}
`, server.URL, expect))})
		if err != nil {
			t.Fatal(err)
		}
		err = l.jobs[0].Func(t.Context(), jobs.NewRun(jobs.RunInfo{Token: 17}))
		if got, want := <-asked, "PUT /p?q=1 hello <nil> hunter2 17"; got != want || (err == nil) != good {
			t.Errorf("asked %q, want %q; expecting %s: %v", got, want, expect, err)
		}
	}
}

// TestJobSettings wants each policy where the scheduler looks for it, from the job or from
// the defaults.
func TestJobSettings(t *testing.T) {
	l, err := load(source{file: "testdata/config/policies.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	want := []jobs.Job{
		{Name: "all-of-it", Schedule: "H H(0-5) * * *", TimeZone: "Europe/Berlin", Overlap: jobs.OverlapReplace, CatchUp: jobs.CatchUpAll,
			CatchUpMax: 20, StartWithin: 2 * time.Minute, OnCrash: jobs.OnCrashRerun, RerunMax: 5, Timeout: time.Minute,
			Retry: jobs.Retry{Max: 2, Backoff: 2 * time.Second, MaxBackoff: 5 * time.Minute}},
		{Name: "inherits", Schedule: "@hourly", TimeZone: "Europe/Berlin", Overlap: jobs.OverlapQueue, CatchUp: jobs.CatchUpAll, CatchUpMax: 5},
		{Name: "follows", After: "all-of-it", Overlap: jobs.OverlapAllow, StartWithin: time.Minute},
		{Name: "follows-that", After: "follows", Overlap: jobs.OverlapQueue},
	}
	if len(l.jobs) != len(want) {
		t.Fatalf("%d jobs, want %d", len(l.jobs), len(want))
	}
	for i, j := range l.jobs {
		if got, want := j.Definition(), want[i].Definition(); got.Digest() != want.Digest() {
			t.Errorf("%s:\n got %+v\nwant %+v", j.Name, got, want)
		}
	}
}

// TestWrittenDefaults wants a file that shows every setting of a job with its default to be the same as one that shows none:
// also those that only another policy uses.
func TestWrittenDefaults(t *testing.T) {
	l, err := load(source{file: write(t, `
jobs:
  - name: a
    schedule: "@hourly"
    time_zone: UTC
    overlap: skip
    catch_up: latest
    catch_up_max: 10
    on_crash: record
    rerun_max: 3
    ttl: 15s
    retry: {max: 0, backoff: 1s, max_backoff: 1m}
    shards: 1
    params: []
    placement: owner
    labels: {}
    after: ""
    exec: {command: ["true"], dir: "", env: {}}
`)})
	if err != nil {
		t.Fatal(err)
	}
	bare := jobs.Job{Name: "a", Schedule: "@hourly"}.WithDefaults(jobs.Defaults{})
	if got, want := l.jobs[0].Definition(), bare.Definition(); got.Digest() != want.Digest() {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
