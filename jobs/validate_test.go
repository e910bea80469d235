package jobs_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func nothing(context.Context, *jobs.Run) error { return nil }

func good() jobs.Job {
	return jobs.Job{Name: "report", Schedule: "*/5 * * * *", Func: nothing}
}

// faultsOf returns the fields of the joined FieldErrors, in order.
func faultsOf(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		t.Fatalf("%T is not a joined error", err)
	}
	var fields []string
	for _, e := range joined.Unwrap() {
		var f *jobs.FieldError
		if !errors.As(e, &f) {
			t.Fatalf("%T is not a *FieldError", e)
		}
		fields = append(fields, f.Field)
	}
	return fields
}

func TestValidateAcceptsWhatWorks(t *testing.T) {
	for name, edit := range map[string]func(*jobs.Job){
		"nothing more": func(*jobs.Job) {},
		"filled":       func(j *jobs.Job) { *j = j.WithDefaults(jobs.Defaults{}) },
		"timeout":      func(j *jobs.Job) { j.Timeout = 1500 * time.Millisecond },
		"least ttl":    func(j *jobs.Job) { j.TTL = jobs.MinTTL },
		"most ttl":     func(j *jobs.Job) { j.TTL = jobs.MaxTTL },
		"zone":         func(j *jobs.Job) { j.TimeZone = "Europe/Berlin" },
		"same zone":    func(j *jobs.Job) { j.Schedule, j.TimeZone = "TZ=Asia/Tokyo 0 5 * * *", "Asia/Tokyo" },
		"labels":       func(j *jobs.Job) { j.Labels = map[string]string{"disk": "ssd", "k8s.io/zone": ""} },
		"one shard":    func(j *jobs.Job) { j.Shards = 1 },
		"long name":    func(j *jobs.Job) { j.Name = strings.Repeat("a", 128) },
		"rich name":    func(j *jobs.Job) { j.Name = "9team/a.b_c:d-e" },
	} {
		j := good()
		edit(&j)
		if err := j.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestValidateRefuses(t *testing.T) {
	long := strings.Repeat("x", 4000)
	for _, c := range []struct {
		field, words string
		edit         func(*jobs.Job)
	}{
		{"name", "is not a job name", func(j *jobs.Job) { j.Name = "" }},
		{"name", "is not a job name", func(j *jobs.Job) { j.Name = "-a" }},
		{"name", "is not a job name", func(j *jobs.Job) { j.Name = "a b" }},
		{"name", "is not a job name", func(j *jobs.Job) { j.Name = "a\n" }},
		{"name", "is not a job name", func(j *jobs.Job) { j.Name = "{a}" }},
		{"name", "is not a job name", func(j *jobs.Job) { j.Name = long }},
		{"schedule", "is empty", func(j *jobs.Job) { j.Schedule = "" }},
		{"schedule", "minute", func(j *jobs.Job) { j.Schedule = "61 * * * *" }},
		{"schedule", "keep one of the two", func(j *jobs.Job) { j.Schedule, j.TimeZone = "TZ=Asia/Tokyo 0 5 * * *", "UTC" }},
		{"time_zone", "is not known", func(j *jobs.Job) { j.TimeZone = "Europe/Berlim" }},
		{"time_zone", "differs from node to node", func(j *jobs.Job) { j.TimeZone = "Local" }},
		{"func", "is missing", func(j *jobs.Job) { j.Func = nil }},
		{"overlap", "queue is not there yet; use skip", func(j *jobs.Job) { j.Overlap = jobs.OverlapQueue }},
		{"overlap", "value 9 is not known", func(j *jobs.Job) { j.Overlap = 9 }},
		{"catch_up", "all is not there yet; use latest", func(j *jobs.Job) { j.CatchUp = jobs.CatchUpAll }},
		{"catch_up_max", "10 is not there yet", func(j *jobs.Job) { j.CatchUpMax = 10 }},
		{"start_within", "2m0s is not there yet", func(j *jobs.Job) { j.StartWithin = 2 * time.Minute }},
		{"on_crash", "rerun is not there yet; use record", func(j *jobs.Job) { j.OnCrash = jobs.OnCrashRerun }},
		{"rerun_max", "3 is not there yet", func(j *jobs.Job) { j.RerunMax = 3 }},
		{"placement", "race is not there yet; use owner", func(j *jobs.Job) { j.Placement = jobs.PlacementRace }},
		{"timeout", "is negative", func(j *jobs.Job) { j.Timeout = -time.Second }},
		{"timeout", "whole number of milliseconds", func(j *jobs.Job) { j.Timeout = 1500 * time.Microsecond }},
		{"ttl", "is outside 3s to 1h", func(j *jobs.Job) { j.TTL = jobs.MinTTL - time.Millisecond }},
		{"ttl", "is outside 3s to 1h", func(j *jobs.Job) { j.TTL = jobs.MaxTTL + time.Millisecond }},
		{"ttl", "is negative", func(j *jobs.Job) { j.TTL = -1 }},
		{"ttl", "whole number of milliseconds", func(j *jobs.Job) { j.TTL = 4*time.Second + 1 }},
		{"retry.max", "2 is not there yet", func(j *jobs.Job) { j.Retry.Max = 2 }},
		{"retry.backoff", "1s is not there yet", func(j *jobs.Job) { j.Retry.Backoff = time.Second }},
		{"retry.max_backoff", "1m0s is not there yet", func(j *jobs.Job) { j.Retry.MaxBackoff = time.Minute }},
		{"shards", "2 is not there yet; use 1", func(j *jobs.Job) { j.Shards = 2 }},
		{"shards", "is outside 1 to 1024", func(j *jobs.Job) { j.Shards = -1 }},
		{"shards", "is outside 1 to 1024", func(j *jobs.Job) { j.Shards = 1025 }},
		{"params", "is not there yet", func(j *jobs.Job) { j.Params = []string{"a"} }},
		{"labels", "is not a label", func(j *jobs.Job) { j.Labels = map[string]string{"a b": ""} }},
		{"labels.a", "at most 256 bytes", func(j *jobs.Job) { j.Labels = map[string]string{"a": long} }},
		{"labels.a", "UTF-8", func(j *jobs.Job) { j.Labels = map[string]string{"a": "\xff"} }},
		{"after", "is not there yet", func(j *jobs.Job) { j.After = "other" }},
	} {
		j := good()
		c.edit(&j)
		err := j.Validate()
		if fields := faultsOf(t, err); !reflect.DeepEqual(fields, []string{c.field}) {
			t.Errorf("%s (%s): faults %v: %v", c.field, c.words, fields, err)
			continue
		}
		if text := err.Error(); !strings.Contains(text, c.words) || !strings.HasPrefix(text, c.field+": ") || len(text) > 400 {
			t.Errorf("%s: text %q, want %q in it", c.field, text, c.words)
		}
	}
}

func TestValidateNamesEveryFaultAtOnce(t *testing.T) {
	j := jobs.Job{
		Name: "no name", Schedule: "0 0 30 2 *", TimeZone: "Nowhere", Overlap: jobs.OverlapAllow,
		CatchUp: jobs.CatchUpNone, OnCrash: jobs.OnCrashRerun, Timeout: -1, TTL: time.Second,
		Retry: jobs.Retry{Max: 1}, Shards: 4, Params: []string{"a"}, Placement: jobs.PlacementRace, After: "x",
	}
	want := []string{"name", "time_zone", "schedule", "func", "overlap", "catch_up", "on_crash", "placement",
		"timeout", "ttl", "retry.max", "shards", "params", "after"}
	if got := faultsOf(t, j.Validate()); !reflect.DeepEqual(got, want) {
		t.Errorf("faults:\n got %v\nwant %v", got, want)
	}
}

func TestWithDefaults(t *testing.T) {
	site := jobs.Defaults{TTL: time.Minute, TimeZone: "Asia/Tokyo", Overlap: jobs.OverlapQueue, CatchUp: jobs.CatchUpAll}
	own := jobs.Job{TTL: 5 * time.Second, TimeZone: "Europe/Rome", Overlap: jobs.OverlapAllow, CatchUp: jobs.CatchUpNone, Shards: 3}
	for _, c := range []struct {
		name     string
		in, want jobs.Job
		d        jobs.Defaults
	}{
		{"built in", jobs.Job{}, jobs.Job{TTL: 15 * time.Second, TimeZone: "UTC", Shards: 1}, jobs.Defaults{}},
		{"site", jobs.Job{}, jobs.Job{TTL: time.Minute, TimeZone: "Asia/Tokyo", Overlap: jobs.OverlapQueue,
			CatchUp: jobs.CatchUpAll, Shards: 1}, site},
		{"own", own, own, site},
		{"prefix", jobs.Job{Schedule: "CRON_TZ=Europe/Rome 0 5 * * *"}, jobs.Job{Schedule: "CRON_TZ=Europe/Rome 0 5 * * *",
			TTL: time.Minute, TimeZone: "Europe/Rome", Overlap: jobs.OverlapQueue, CatchUp: jobs.CatchUpAll, Shards: 1}, site},
		{"unknown prefix", jobs.Job{Schedule: "TZ=Nowhere @daily"}, jobs.Job{Schedule: "TZ=Nowhere @daily",
			TTL: 15 * time.Second, Shards: 1}, jobs.Defaults{}},
		{"bad prefix", jobs.Job{Schedule: "TZ=0"}, jobs.Job{Schedule: "TZ=0", TTL: 15 * time.Second, Shards: 1}, jobs.Defaults{}},
	} {
		got := c.in.WithDefaults(c.d)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, got, c.want)
		}
		if again := got.WithDefaults(c.d); !reflect.DeepEqual(again, got) {
			t.Errorf("%s: filling twice changes %+v into %+v", c.name, got, again)
		}
	}
}
