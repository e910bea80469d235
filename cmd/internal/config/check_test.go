package config

import (
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
)

// TestJobSettings expects each policy in the scheduler's setting, from the job or from the
// defaults.
func TestJobSettings(t *testing.T) {
	l, err := Load(Source{File: "testdata/policies.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	want := []jobs.Job{
		{Name: "all-of-it", Schedule: "H H(0-5) * * *", TimeZone: "Europe/Berlin", Overlap: jobs.OverlapReplace, CatchUp: jobs.CatchUpAll,
			CatchUpMax: 20, StartWithin: 2 * time.Minute, OnCrash: jobs.OnCrashRerun, RerunMax: 5, Timeout: time.Minute, StallAfter: 10 * time.Second, OnStall: jobs.OnStallCancel,
			Retry: jobs.Retry{Max: 2, Backoff: 2 * time.Second, MaxBackoff: 5 * time.Minute}, Expect: jobs.Expect{SuccessWithin: 26 * time.Hour}},
		{Name: "inherits", Schedule: "@hourly", TimeZone: "Europe/Berlin", Overlap: jobs.OverlapQueue, CatchUp: jobs.CatchUpAll, CatchUpMax: 5},
		{Name: "its-own", Schedule: "@hourly", TimeZone: "Europe/Berlin"},
		{Name: "follows", After: []string{"all-of-it"}, Overlap: jobs.OverlapAllow, StartWithin: time.Minute},
		{Name: "follows-that", After: []string{"follows"}, Overlap: jobs.OverlapQueue},
	}
	if len(l.JobList) != len(want) {
		t.Fatalf("%d jobs, want %d", len(l.JobList), len(want))
	}
	for i, j := range l.JobList {
		if got, want := j.Definition(), want[i].Definition(); got.Digest() != want.Digest() {
			t.Errorf("%s:\n got %+v\nwant %+v", j.Name, got, want)
		}
	}
}

// TestWrittenDefaults checks that a file with every setting of a job at its default equals a file
// without settings, including settings that only another policy uses.
func TestWrittenDefaults(t *testing.T) {
	l, err := Load(Source{File: testkit.Write(t, `
jobs:
  - name: a
    schedule: "@hourly"
    time_zone: UTC
    overlap: skip
    catch_up: latest
    catch_up_max: 10
    on_crash: record
    rerun_max: 3
    stall_after: 0s
    ttl: 15s
    retry: {max: 0, backoff: 1s, max_backoff: 1m}
    shards: 1
    params: []
    placement: owner
    labels: {}
    after: ""
    when: succeeded
    exec: {command: ["true"], dir: "", env: {}}
`)})
	if err != nil {
		t.Fatal(err)
	}
	bare := jobs.Job{Name: "a", Schedule: "@hourly"}.WithDefaults(jobs.Defaults{})
	if got, want := l.JobList[0].Definition(), bare.Definition(); got.Digest() != want.Digest() {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
