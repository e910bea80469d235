package jobs_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

// full has every setting that a job with a schedule can have in this version.
func full() jobs.Job {
	return jobs.Job{
		Name: "all", Schedule: "H 5 * * *", TimeZone: "Europe/Berlin", Overlap: jobs.OverlapQueue,
		CatchUp: jobs.CatchUpAll, CatchUpMax: 20, StartWithin: 2 * time.Minute, OnCrash: jobs.OnCrashRerun,
		RerunMax: 5, Timeout: time.Minute, TTL: 20 * time.Second,
		Retry:  jobs.Retry{Max: 2, Backoff: 2 * time.Second, MaxBackoff: time.Hour},
		Shards: 1, Labels: map[string]string{"z": "1", "disk": "<ssd>"},
	}
}

// later has the settings that are stored and not carried out yet.
func later() jobs.Job {
	j := good()
	j.Shards, j.Params, j.Placement = 2, []string{"a", "<b>"}, jobs.PlacementRace
	j.Limit, j.Guard = jobs.Limit{Group: "db", Max: 3}, "paper"
	return j
}

// bounded has the bounds of ticks.
func bounded() jobs.Job {
	j := good()
	j.Except, j.Only = []string{"2026-12-24..2027-01-02"}, []string{"2026-12-01..2040-12-31"}
	j.StartAt, j.EndAt = time.UnixMilli(1_790_000_000_000).UTC(), time.UnixMilli(1_990_000_000_001).UTC()
	return j
}

func follower() jobs.Job { return jobs.Job{Name: "follower", After: []string{"report"}, Func: nothing} }

// The stored form and its digest are a format: a change of either makes every node of a
// rolling deploy see a changed job.
func TestDefinitionFormat(t *testing.T) {
	for _, c := range []struct {
		job          jobs.Job
		text, digest string
	}{
		{good(), `{"v":1,"name":"report","schedule":"*/5 * * * *","time_zone":"UTC","ttl_ms":15000}`, "f10e69bcc0b94df7"},
		{full(), `{"v":1,"name":"all","schedule":"H 5 * * *","time_zone":"Europe/Berlin","overlap":"queue",` +
			`"catch_up":"all","catch_up_max":20,"start_within_ms":120000,"on_crash":"rerun","rerun_max":5,` +
			`"timeout_ms":60000,"ttl_ms":20000,"retry_max":2,"retry_backoff_ms":2000,"retry_max_backoff_ms":3600000,` +
			`"labels":{"disk":"\u003cssd\u003e","z":"1"}}`, "643ca7fa5608756c"},
		{later(), `{"v":1,"name":"report","schedule":"*/5 * * * *","time_zone":"UTC","ttl_ms":15000,` +
			`"shards":2,"params":["a","\u003cb\u003e"],"placement":"race","limit_group":"db","limit_max":3,"guard":"paper"}`, "689f1d4040c99c0b"},
		{bounded(), `{"v":1,"name":"report","schedule":"*/5 * * * *","time_zone":"UTC",` +
			`"except":["2026-12-24..2027-01-02"],"only":["2026-12-01..2040-12-31"],"start_at_ms":1790000000000,"end_at_ms":1990000000001,"ttl_ms":15000}`, "4dba96ee4b2eb6cc"},
		{follower(), `{"v":1,"name":"follower","schedule":"","time_zone":"UTC","ttl_ms":15000,"after":"report"}`, "f3ce22ba112a091f"},
	} {
		d := c.job.Definition()
		text, err := json.Marshal(d)
		if err != nil || string(text) != c.text {
			t.Errorf("%s:\n got %s (%v)\nwant %s", c.job.Name, text, err, c.text)
		}
		if got := d.Digest(); got != c.digest {
			t.Errorf("%s: digest %s, want %s", c.job.Name, got, c.digest)
		}
	}
}

// TestDefinitionProperties draws jobs that Validate accepts: their stored form reads back as the
// job, and a named default equals a setting that is left out.
func TestDefinitionProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := drawJob(t)
		if err := j.Validate(); err != nil {
			t.Fatalf("%+v: %v", j, err)
		}
		filled := j.WithDefaults(jobs.Defaults{})
		if a, b := j.Definition().Digest(), filled.Definition().Digest(); a != b {
			t.Fatalf("defaults left out give %s, written out %s", a, b)
		}
		text, err := json.Marshal(j.Definition())
		if err != nil {
			t.Fatal(err)
		}
		d, err := jobs.ParseDefinition(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if filled.Func = nil; !reflect.DeepEqual(d.Job, filled) {
			t.Fatalf("%s:\n got %+v\nwant %+v", text, d.Job, filled)
		}
		if d.Digest() != j.Definition().Digest() {
			t.Fatalf("%s: the digest changed on the way", text)
		}
	})
}

// drawJob draws each setting from nothing, its default and other values.
func drawJob(t *rapid.T) jobs.Job {
	ms := func(label string, values ...time.Duration) time.Duration {
		return rapid.SampledFrom(values).Draw(t, label)
	}
	j := jobs.Job{
		Name: rapid.StringMatching(`[a-z0-9][a-z:/.-]{0,9}`).Draw(t, "name"), Func: nothing,
		Overlap:     rapid.SampledFrom([]jobs.Overlap{0, 1, 2, 3}).Draw(t, "overlap"),
		StartWithin: ms("start_within", 0, time.Millisecond, 2*time.Minute),
		OnCrash:     rapid.SampledFrom([]jobs.OnCrash{0, 1}).Draw(t, "on_crash"),
		Timeout:     ms("timeout", 0, 1500*time.Millisecond),
		TTL:         ms("ttl", 0, 15*time.Second, time.Minute),
		Shards:      rapid.IntRange(0, 2).Draw(t, "shards"),
		Placement:   rapid.SampledFrom([]jobs.Placement{0, 1}).Draw(t, "placement"),
		Expect:      jobs.Expect{SuccessWithin: ms("success_within", 0, 26*time.Hour)},
	}
	if j.Shards == 2 && rapid.Bool().Draw(t, "params") {
		j.Params = []string{"a", "<b>"}
	}
	if rapid.Bool().Draw(t, "follows") {
		j.After, j.TimeZone = []string{"other"}, rapid.SampledFrom([]string{"", "UTC"}).Draw(t, "zone")
	} else {
		j.Schedule = rapid.SampledFrom([]string{"H/5 * * * *", "@every 90s", "TZ=Asia/Tokyo 0 5 * * *"}).Draw(t, "schedule")
		j.TimeZone = rapid.SampledFrom([]string{"", "Asia/Tokyo"}).Draw(t, "zone")
		j.CatchUp = rapid.SampledFrom([]jobs.CatchUp{0, 1, 2}).Draw(t, "catch_up")
	}
	if len(j.After) == 0 && rapid.Bool().Draw(t, "bounded") {
		b := bounded()
		j.Except, j.Only, j.StartAt, j.EndAt = b.Except, b.Only, b.StartAt, b.EndAt
	}
	if len(j.After) == 0 {
		j.Jitter, j.MaxRuns = ms("jitter", 0, time.Millisecond, 90*time.Second), rapid.SampledFrom([]int{0, 1, 1_000_000_000}).Draw(t, "max_runs")
	}
	if j.CatchUp == jobs.CatchUpAll {
		j.CatchUpMax = rapid.SampledFrom([]int{0, 10, 11}).Draw(t, "catch_up_max")
	}
	if j.OnCrash == jobs.OnCrashRerun {
		j.RerunMax = rapid.SampledFrom([]int{0, 3, 100}).Draw(t, "rerun_max")
	}
	if j.Retry.Max = rapid.IntRange(0, 2).Draw(t, "retry"); j.Retry.Max > 0 {
		j.Retry.Backoff = ms("backoff", 0, time.Second, time.Minute)
		j.Retry.MaxBackoff = ms("max_backoff", 0, time.Minute, time.Hour)
		j.Retry.On = rapid.SampledFrom([]jobs.RetryOn{0, 1}).Draw(t, "retry_on")
		j.Retry.Timeout = ms("try_timeout", 0, time.Millisecond, 1499*time.Millisecond)
	}
	if rapid.Bool().Draw(t, "labelled") {
		j.Labels = map[string]string{"disk": rapid.SampledFrom([]string{"", "ssd"}).Draw(t, "label")}
	}
	return j
}

// Without one of the settings, a job that has every one has another digest, and other ticks where
// the table has it so.
func TestDigestSeesEverySetting(t *testing.T) {
	base, _ := decodeJob(t, every)
	seen := map[string]string{base.Definition().Digest(): "nothing"}
	for _, s := range spec.All() {
		j, _ := decodeJob(t, every)
		field := reflect.ValueOf(&j).Elem()
		for name := range strings.SplitSeq(s.Field, ".") {
			field = field.FieldByName(name)
		}
		field.SetZero()
		digest := j.Definition().Digest()
		if other, taken := seen[digest]; taken {
			t.Errorf("without %s a job has the digest of one without %s", s.Name, other)
		}
		seen[digest] = s.Name
		if was, is := base.Definition(), j.Definition(); was.SameTicks(is) == s.Ticks {
			t.Errorf("%s: part of the schedule: %v, and SameTicks returns %v", s.Name, s.Ticks, was.SameTicks(is))
		}
	}
}

func TestParseDefinitionRefuses(t *testing.T) {
	for text, words := range map[string]string{
		`{"name":"a"}`:           "format version 0 is not valid",
		`{"v":2,"what":"ever"}`:  "format 2 was written by a newer version",
		`{"v":1,"schedule":"a"}`: "name must not be empty",
		`{"v":1,"name":"a"}`:     `definition "a": schedule and after are both empty`,
		`{"v":1,"name":"a","schedule":"@daily","after":"b"}`: `has the schedule "@daily" and runs after "b"`,
		`{"v":1,"nam":"a"}`:                                  "unknown field",
		`{"v":1,"name":"a"} {}`:                              "invalid character",
		`{"v":1,"overlap":"huh"}`:                            `overlap "huh" is not known; use one of skip, queue`,
		`{"v":1,"name":"a","schedule":"@daily","ttl_ms":-1}`: "ttl_ms -1 is outside",
	} {
		_, err := jobs.ParseDefinition([]byte(text))
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: error %v, want %q in it", text, err, words)
		}
	}
}

// Every accepted definition must be stored again without loss.
func FuzzParseDefinition(f *testing.F) {
	for _, j := range []jobs.Job{good(), full(), later(), bounded(), follower()} {
		text, err := json.Marshal(j.Definition())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"v":2}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := jobs.ParseDefinition(text)
		if err != nil {
			return
		}
		out, err := json.Marshal(d)
		if err != nil {
			t.Fatalf("accepted, but cannot be written: %v", err)
		}
		again, err := jobs.ParseDefinition(out)
		if err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if d.Digest() != again.Digest() {
			t.Fatalf("%s reads back as %+v", out, again)
		}
		_ = d.Validate()
	})
}
