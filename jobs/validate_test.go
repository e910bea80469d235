package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/cron"
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
		"least ttl":    func(j *jobs.Job) { j.TTL = 3 * time.Second },
		"most ttl":     func(j *jobs.Job) { j.TTL = time.Hour },
		"same zone":    func(j *jobs.Job) { j.Schedule, j.TimeZone = "TZ=Asia/Tokyo 0 5 * * *", "Asia/Tokyo" },
		"labels":       func(j *jobs.Job) { j.Labels = map[string]string{"disk": "ssd", "k8s.io/zone": ""} },
		"long name":    func(j *jobs.Job) { j.Name = strings.Repeat("a", 128) },
		"rich name":    func(j *jobs.Job) { j.Name = "9team/a.b_c:d-e" },
		"allow":        func(j *jobs.Job) { j.Overlap = jobs.OverlapAllow },
		"most of all":  func(j *jobs.Job) { j.CatchUp, j.CatchUpMax = jobs.CatchUpAll, 10_000 },
		"start within": func(j *jobs.Job) { j.StartWithin = time.Millisecond },
		"stall":        func(j *jobs.Job) { j.StallAfter, j.OnStall = time.Second, jobs.OnStallCancel },
		"reruns":       func(j *jobs.Job) { j.OnCrash, j.RerunMax = jobs.OnCrashRerun, 100 },
		"race":         func(j *jobs.Job) { j.Placement = jobs.PlacementRace },
		"retries": func(j *jobs.Job) {
			j.Retry = jobs.Retry{Max: 100, Backoff: 24 * time.Hour, MaxBackoff: 24 * time.Hour}
		},
		"short waits": func(j *jobs.Job) {
			j.Retry = jobs.Retry{Max: 2, Backoff: time.Millisecond, MaxBackoff: time.Millisecond}
		},
		"after": func(j *jobs.Job) { j.Schedule, j.After = "", []string{"other"} },
		"after, with a lot": func(j *jobs.Job) {
			*j = full()
			j.Func, j.Schedule, j.After, j.TimeZone = nothing, "", []string{"other"}, "UTC"
			j.CatchUp, j.CatchUpMax = 0, 0
		},
		"a year":     func(j *jobs.Job) { j.Expect.SuccessWithin = 366 * 24 * time.Hour },
		"everything": func(j *jobs.Job) { *j = full(); j.Func = nothing },
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
		{"name", "is not a name", func(j *jobs.Job) { j.Name = "-a" }},
		{"name", "is not a name", func(j *jobs.Job) { j.Name = "a\n" }},
		{"name", "is not a name", func(j *jobs.Job) { j.Name = long }},
		{"schedule", "is empty", func(j *jobs.Job) { j.Schedule = "" }},
		{"schedule", "minute", func(j *jobs.Job) { j.Schedule = "61 * * * *" }},
		{"schedule", "never steps", func(j *jobs.Job) { j.Schedule = "*/60 * * * *" }},
		{"schedule", "keep one of the two", func(j *jobs.Job) { j.Schedule, j.TimeZone = "TZ=Asia/Tokyo 0 5 * * *", "UTC" }},
		{"time_zone", "is not known", func(j *jobs.Job) { j.TimeZone = "Europe/Berlim" }},
		{"time_zone", "differs from node to node", func(j *jobs.Job) { j.TimeZone = "Local" }},
		{"time_zone", "posixrules differs from node to node", func(j *jobs.Job) { j.TimeZone = "posixrules" }},
		{"time_zone", `write "Europe/Berlin"`, func(j *jobs.Job) { j.TimeZone = "right/Europe/Berlin" }},
		{"schedule", `write "UTC"`, func(j *jobs.Job) { j.Schedule = "CRON_TZ=right/UTC 0 5 * * *" }},
		{"func", "is missing", func(j *jobs.Job) { j.Func = nil }},
		{"overlap", "value 9 is not known", func(j *jobs.Job) { j.Overlap = 9 }},
		{"catch_up", "value 3 is not known", func(j *jobs.Job) { j.CatchUp = 3 }},
		{"catch_up_max", "is only used with catch_up: all", func(j *jobs.Job) { j.CatchUpMax = 10 }},
		{"catch_up_max", "-1 is outside 1 to 10000", func(j *jobs.Job) { j.CatchUp, j.CatchUpMax = jobs.CatchUpAll, -1 }},
		{"start_within", "-1s is negative", func(j *jobs.Job) { j.StartWithin = -time.Second }},
		{"start_within", "whole number of milliseconds", func(j *jobs.Job) { j.StartWithin = 1 }},
		{"on_crash", "value 2 is not known", func(j *jobs.Job) { j.OnCrash = 2 }},
		{"stall_after", "-1s is negative", func(j *jobs.Job) { j.StallAfter = -time.Second }},
		{"stall_after", "999ms is less than 1s; a node checks its runs each second", func(j *jobs.Job) { j.StallAfter = 999 * time.Millisecond }},
		{"on_stall", "cancel is only used with stall_after", func(j *jobs.Job) { j.OnStall = jobs.OnStallCancel }},
		{"on_stall", "value 7 is not known; use one of tell, cancel", func(j *jobs.Job) { j.StallAfter, j.OnStall = time.Second, 7 }},
		{"rerun_max", "3 is only used with on_crash: rerun", func(j *jobs.Job) { j.RerunMax = 3 }},
		{"rerun_max", "101 is outside 1 to 100", func(j *jobs.Job) { j.OnCrash, j.RerunMax = jobs.OnCrashRerun, 101 }},
		{"placement", "value 2 is not known", func(j *jobs.Job) { j.Placement = 2 }},
		{"timeout", "is negative", func(j *jobs.Job) { j.Timeout = -time.Second }},
		{"timeout", "whole number of milliseconds", func(j *jobs.Job) { j.Timeout = 1500 * time.Microsecond }},
		{"ttl", "2.999s is outside 3s to 1h; leave it out for 15s", func(j *jobs.Job) { j.TTL = 3*time.Second - time.Millisecond }},
		{"ttl", "whole number of milliseconds", func(j *jobs.Job) { j.TTL = 4*time.Second + 1 }},
		{"retry.max", "-1 is outside 0 to 100", func(j *jobs.Job) { j.Retry.Max = -1 }},
		{"retry.backoff", "1s is only used with retry.max above 0", func(j *jobs.Job) { j.Retry.Backoff = time.Second }},
		{"retry.backoff", "-1s is negative", func(j *jobs.Job) { j.Retry = jobs.Retry{Max: 1, Backoff: -time.Second} }},
		{"retry.backoff", "25h is outside 1ms to 24h", func(j *jobs.Job) { j.Retry = jobs.Retry{Max: 1, Backoff: 25 * time.Hour} }},
		{"retry.max_backoff", "1m is only used with retry.max above 0", func(j *jobs.Job) { j.Retry.MaxBackoff = time.Minute }},
		{"retry.max_backoff", "2s is less than retry.backoff, 3s", func(j *jobs.Job) {
			j.Retry = jobs.Retry{Max: 1, Backoff: 3 * time.Second, MaxBackoff: 2 * time.Second}
		}},
		{"retry.max_backoff", "1m is less than retry.backoff, 2m", func(j *jobs.Job) { j.Retry = jobs.Retry{Max: 1, Backoff: 2 * time.Minute} }},
		{"shards", "is outside 1 to 1024", func(j *jobs.Job) { j.Shards = 1025 }},
		{"params", "1 for 2 shards", func(j *jobs.Job) { j.Shards, j.Params = 2, []string{"a"} }},
		{"params[1]", "must be UTF-8 text of at most 256 bytes", func(j *jobs.Job) { j.Shards, j.Params = 2, []string{"a", strings.Repeat("x", 257)} }},
		{"labels", "is not a label", func(j *jobs.Job) { j.Labels = map[string]string{"a b": ""} }},
		{"labels.a", "at most 256 bytes", func(j *jobs.Job) { j.Labels = map[string]string{"a": long} }},
		{"after", `"other" does not go with the schedule "*/5 * * * *"`, func(j *jobs.Job) { j.After = []string{"other"} }},
		{"after", `"a" stands there twice`, func(j *jobs.Job) { j.Schedule, j.After = "", []string{"a", "b", "a"} }},
		{"after", "17 are more than 16", func(j *jobs.Job) {
			j.Schedule, j.After = "", strings.Split("a b c d e f g h i j k l m n o p q", " ")
		}},
		{"when", "failed is only used with after", func(j *jobs.Job) { j.When = jobs.WhenFailed }},
		{"when", "value 9 is not known", func(j *jobs.Job) { j.Schedule, j.After, j.When = "", []string{"a"}, 9 }},
		{"after", "is not a job name", func(j *jobs.Job) { j.Schedule, j.After = "", []string{"the other"} }},
		{"limit.max", "3 is only used with limit.group", func(j *jobs.Job) { j.Limit.Max = 3 }},
		{"limit.group", "is not a name", func(j *jobs.Job) { j.Limit = jobs.Limit{Group: "the db", Max: 3} }},
		{"limit.max", "0 is outside 1 to 1000", func(j *jobs.Job) { j.Limit.Group = "db" }},
		{"limit.max", "1001 is outside 1 to 1000", func(j *jobs.Job) { j.Limit = jobs.Limit{Group: "db", Max: 1001} }},
		{"guard", "is not a name", func(j *jobs.Job) { j.Guard = "a guard" }},
		{"expect.success_within", "-1h is negative", func(j *jobs.Job) { j.Expect.SuccessWithin = -time.Hour }},
		{"expect.success_within", "whole number of milliseconds", func(j *jobs.Job) { j.Expect.SuccessWithin = 1 }},
		{"expect.success_within", "8808h is outside 1ms to 8784h", func(j *jobs.Job) { j.Expect.SuccessWithin = 367 * 24 * time.Hour }},
		{"time_zone", "Europe/Berlin is not used: a job with after", func(j *jobs.Job) {
			j.Schedule, j.After, j.TimeZone = "", []string{"other"}, "Europe/Berlin"
		}},
		{"time_zone", "is not known", func(j *jobs.Job) { j.Schedule, j.After, j.TimeZone = "", []string{"other"}, "Europe/Berlim" }},
		{"catch_up", "is not used: a job with after", func(j *jobs.Job) { j.Schedule, j.After, j.CatchUp = "", []string{"other"}, jobs.CatchUpNone }},
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
		Name: "no name", Schedule: "0 0 30 2 *", TimeZone: "Nowhere", Overlap: 9, CatchUp: 9, CatchUpMax: 5,
		StartWithin: -1, OnCrash: 9, RerunMax: 5, Timeout: -1, TTL: time.Second,
		Retry: jobs.Retry{Max: 101, Backoff: -1, MaxBackoff: -1}, Shards: -1, Params: []string{"a", "b"}, Placement: 9,
		Labels: map[string]string{"": ""},
	}
	want := []string{"name", "time_zone", "schedule", "overlap", "catch_up", "catch_up_max", "start_within", "on_crash",
		"rerun_max", "timeout", "ttl", "retry.max", "retry.backoff", "retry.max_backoff", "shards", "params", "placement", "labels", "func"}
	if got := faultsOf(t, j.Validate()); !reflect.DeepEqual(got, want) {
		t.Errorf("faults:\n got %v\nwant %v", got, want)
	}
}

// site holds the defaults of a whole installation.
var site = jobs.Defaults{TTL: time.Minute, TimeZone: "Asia/Tokyo", Overlap: jobs.OverlapQueue, CatchUp: jobs.CatchUpAll}

func TestParsedSchedule(t *testing.T) {
	named := func(name string) string {
		j := jobs.Job{Name: name, Schedule: "H H * * *", TimeZone: "Europe/Berlin"}
		s, err := j.ParsedSchedule()
		if err != nil {
			t.Fatal(err)
		}
		want, err := cron.ParseFor(name, j.Schedule, j.TimeZone)
		if err != nil || s.Resolved() != want.Resolved() || s.String() != want.String() {
			t.Errorf("%s: %v, want %v (%v)", name, s.Resolved(), want.Resolved(), err)
		}
		return s.Resolved()
	}
	if a, b := named("report"), named("other"); a == b {
		t.Errorf("both names give %s", a)
	}
	if s, err := (jobs.Job{Name: "a", After: []string{"b"}}).ParsedSchedule(); s != nil || err != nil {
		t.Errorf("after another job: %v, %v", s, err)
	}
	if s, err := (jobs.Job{Name: "a", Schedule: "61 * * * *"}).ParsedSchedule(); s != nil || err == nil {
		t.Errorf("a bad one: %v, %v", s, err)
	}
}

func TestWithDefaults(t *testing.T) {
	own := jobs.Job{TTL: 5 * time.Second, TimeZone: "Europe/Rome", Overlap: jobs.OverlapAllow, CatchUp: jobs.CatchUpNone, Shards: 3}
	for _, c := range []struct {
		name     string
		in, want jobs.Job
		d        jobs.Defaults
	}{
		{"built in", jobs.Job{}, jobs.Job{TTL: 15 * time.Second, TimeZone: "UTC", Shards: 1}, jobs.Defaults{}},
		{"site", jobs.Job{}, jobs.Job{TTL: time.Minute, TimeZone: "Asia/Tokyo", Overlap: jobs.OverlapQueue,
			CatchUp: jobs.CatchUpAll, CatchUpMax: 10, Shards: 1}, site},
		{"own", own, own, site},
		{"prefix", jobs.Job{Schedule: "CRON_TZ=Europe/Rome 0 5 * * *"}, jobs.Job{Schedule: "CRON_TZ=Europe/Rome 0 5 * * *",
			TTL: time.Minute, TimeZone: "Europe/Rome", Overlap: jobs.OverlapQueue, CatchUp: jobs.CatchUpAll, CatchUpMax: 10, Shards: 1}, site},
		{"after", jobs.Job{After: []string{"other"}}, jobs.Job{After: []string{"other"}, TTL: time.Minute, TimeZone: "UTC", Overlap: jobs.OverlapQueue,
			Shards: 1}, site},
		{"policies", jobs.Job{CatchUp: jobs.CatchUpAll, OnCrash: jobs.OnCrashRerun, Retry: jobs.Retry{Max: 1}},
			jobs.Job{TTL: 15 * time.Second, TimeZone: "UTC", CatchUp: jobs.CatchUpAll, CatchUpMax: 10, OnCrash: jobs.OnCrashRerun, RerunMax: 3,
				Retry: jobs.Retry{Max: 1, Backoff: time.Second, MaxBackoff: time.Minute}, Shards: 1}, jobs.Defaults{}},
		{"policies' own", full(), full(), site},
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

// The clock of these tests begins with the year 2000.
func TestValidateBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		day := func(text string) time.Time { return at(t, text+"T00:00:00Z") }
		many := make([]string, 501)
		for i := range many {
			many[i] = time.Unix(0, 0).UTC().AddDate(31, 0, i).Format(time.DateOnly)
		}
		for _, c := range []struct {
			job         jobs.Job
			field, want string // "" for a good job
		}{
			{job: jobs.Job{Except: []string{"2000-12-24", "2000-12-31..2001-01-02"}}},
			{job: jobs.Job{Only: []string{"2004-12-24"}}},
			{job: jobs.Job{Only: []string{"2005-01-02"}}, field: "only", want: "leaves no tick in the next 5 years; choose days"},
			{job: jobs.Job{Only: []string{"2007-01-01"}, StartAt: day("2006-01-01")}},
			{job: jobs.Job{Except: []string{"2000-01-01..2004-12-31"}}},
			{job: jobs.Job{Except: []string{"2000-01-01..2005-06-30"}}, field: "except", want: "leaves no tick in the next 5 years"},
			{job: jobs.Job{Schedule: "0 0 1 1 *", Except: []string{"2000-01-01", "2001-01-01..2004-01-01", "2005-01-01"}}, field: "except", want: "next 5 years"},
			{job: jobs.Job{Schedule: "0 0 1 * *", Only: []string{"2000-12-24"}}, field: "only", want: "no tick is left by only 2000-12-24; choose"},
			{job: jobs.Job{Except: []string{"2000-12-24"}, Only: []string{"2000-12-24"}}, field: "only", want: "leave no day"},
			{job: jobs.Job{Except: []string{"2000-12-24", "24.12.2000"}}, field: "except[1]", want: `"24.12.2000" is not a date such as 2026-12-24, or a range`},
			{job: jobs.Job{Only: []string{"2000-02-30"}}, field: "only[0]", want: `"2000-02-30" is not a date`},
			{job: jobs.Job{Only: []string{"2000-12-24..2000-12-20"}}, field: "only[0]", want: "backwards; write its first day first"},
			{job: jobs.Job{Only: []string{"1999-12-31..2000-12-20"}}, field: "only[0]", want: "1999-12-31 is outside the years 2000 to 2199"},
			{job: jobs.Job{Except: many}, field: "except", want: "501 dates and ranges, more than 500"},
			{job: jobs.Job{Except: many[:500]}},
			{job: jobs.Job{StartAt: day("2000-03-01"), EndAt: day("2000-03-01")}},
			{job: jobs.Job{StartAt: day("2000-03-01"), EndAt: day("2000-02-01")}, field: "end_at", want: "2000-02-01T00:00:00Z is before start_at, 2000-03-01T00:00:00Z"},
			{job: jobs.Job{StartAt: day("2000-03-01").Add(time.Second), EndAt: day("2000-03-01").Add(time.Minute)}, field: "end_at", want: "no tick is left by from 2000-03-01T00:00:01Z"},
			{job: jobs.Job{StartAt: day("2000-03-01").Add(time.Microsecond)}, field: "start_at", want: "whole number of milliseconds"},
			{job: jobs.Job{EndAt: day("1999-03-01")}, field: "end_at", want: "year 1999 is outside 2000 to 2199"},
			{job: jobs.Job{Schedule: "@daily except 2000-12-24"}, field: "schedule", want: "has except 2000-12-24; write bounds as except, only, start_at, end_at and jitter of the job"},
			{job: jobs.Job{After: []string{"other"}, Except: []string{"2000-12-24"}}, field: "except", want: "is not used: a job with after has no schedule"},
			{job: jobs.Job{After: []string{"other"}, StartAt: day("2000-12-24")}, field: "start_at", want: "is not used"},
		} {
			j := c.job
			j.Name, j.Func = "report", nothing
			if j.Schedule == "" && len(j.After) == 0 {
				j.Schedule = "@daily"
			}
			err := j.Validate()
			if c.field == "" {
				if err != nil {
					t.Errorf("%+v: %v", c.job, err)
				}
				continue
			}
			if got := fmt.Sprint(faultsOf(t, err)); got != "["+c.field+"]" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v:\n got %v\nwant %s: %s", c.job, err, c.field, c.want)
			}
		}
	})
}

// A job that was good stays good when its days and its end are past: else its nodes would not start
// again.
func TestBoundsThatArePast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := good()
		j.Only, j.EndAt = []string{"2000-01-02..2000-01-03"}, at(t, "2000-01-03T12:00:00Z")
		for range 3 {
			if err := j.Validate(); err != nil {
				t.Fatalf("at %v: %v", time.Now().UTC(), err)
			}
			time.Sleep(4 * 365 * 24 * time.Hour)
		}
		s, err := j.ParsedSchedule()
		if err != nil || !s.Next(time.Now()).IsZero() {
			t.Fatalf("next tick %v, %v", s.Next(time.Now()), err)
		}
	})
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
