package jobs_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func full() jobs.Job {
	return jobs.Job{
		Name: "all", Schedule: "0 5 * * *", TimeZone: "Europe/Berlin", Overlap: jobs.OverlapQueue,
		CatchUp: jobs.CatchUpAll, CatchUpMax: 10, StartWithin: 2 * time.Minute, OnCrash: jobs.OnCrashRerun,
		RerunMax: 3, Timeout: time.Minute, TTL: 20 * time.Second,
		Retry:  jobs.Retry{Max: 2, Backoff: time.Second, MaxBackoff: time.Minute},
		Shards: 2, Params: []string{"a", "<b>"}, Placement: jobs.PlacementRace,
		Labels: map[string]string{"z": "1", "disk": "ssd"}, After: "other",
	}
}

// The stored form and its digest are a format: a change of either makes every node of a
// rolling deploy see a changed job.
func TestDefinitionFormat(t *testing.T) {
	for _, c := range []struct {
		job          jobs.Job
		text, digest string
	}{
		{good(), `{"v":1,"name":"report","schedule":"*/5 * * * *","time_zone":"UTC","ttl_ms":15000}`, "f10e69bcc0b94df7"},
		{full(), `{"v":1,"name":"all","schedule":"0 5 * * *","time_zone":"Europe/Berlin","overlap":"queue",` +
			`"catch_up":"all","catch_up_max":10,"start_within_ms":120000,"on_crash":"rerun","rerun_max":3,` +
			`"timeout_ms":60000,"ttl_ms":20000,"retry_max":2,"retry_backoff_ms":1000,"retry_max_backoff_ms":60000,` +
			`"shards":2,"params":["a","\u003cb\u003e"],"placement":"race","labels":{"disk":"ssd","z":"1"},"after":"other"}`,
			"a03874ccdde36965"},
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

func TestDefinitionRoundTrip(t *testing.T) {
	for _, j := range []jobs.Job{good(), full()} {
		text, err := json.Marshal(j.Definition())
		if err != nil {
			t.Fatal(err)
		}
		d, err := jobs.ParseDefinition(text)
		if err != nil {
			t.Fatal(err)
		}
		want := j.WithDefaults(jobs.Defaults{})
		want.Func = nil
		if got := d.Job(); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
		if d.Digest() != j.Definition().Digest() {
			t.Errorf("%s: the digest changed on the way", j.Name)
		}
	}
}

func TestDigestIgnoresHowADefaultIsWritten(t *testing.T) {
	if a, b := good().Definition().Digest(), good().WithDefaults(jobs.Defaults{}).Definition().Digest(); a != b {
		t.Errorf("left out %s, written out %s", a, b)
	}
}

func TestDigestSeesEverySetting(t *testing.T) {
	base := full()
	seen := map[string]string{base.Definition().Digest(): "nothing"}
	for name, edit := range map[string]func(*jobs.Job){
		"name":        func(j *jobs.Job) { j.Name = "b" },
		"schedule":    func(j *jobs.Job) { j.Schedule = "0 6 * * *" },
		"zone":        func(j *jobs.Job) { j.TimeZone = "UTC" },
		"overlap":     func(j *jobs.Job) { j.Overlap = jobs.OverlapSkip },
		"catch_up":    func(j *jobs.Job) { j.CatchUp = jobs.CatchUpNone },
		"catch_max":   func(j *jobs.Job) { j.CatchUpMax++ },
		"start":       func(j *jobs.Job) { j.StartWithin++; j.StartWithin += time.Second },
		"on_crash":    func(j *jobs.Job) { j.OnCrash = jobs.OnCrashRecord },
		"rerun_max":   func(j *jobs.Job) { j.RerunMax++ },
		"timeout":     func(j *jobs.Job) { j.Timeout += time.Second },
		"ttl":         func(j *jobs.Job) { j.TTL += time.Second },
		"retry":       func(j *jobs.Job) { j.Retry.Max++ },
		"backoff":     func(j *jobs.Job) { j.Retry.Backoff += time.Second },
		"max backoff": func(j *jobs.Job) { j.Retry.MaxBackoff += time.Second },
		"shards":      func(j *jobs.Job) { j.Shards++ },
		"params":      func(j *jobs.Job) { j.Params = []string{"a"} },
		"placement":   func(j *jobs.Job) { j.Placement = jobs.PlacementOwner },
		"labels":      func(j *jobs.Job) { j.Labels = map[string]string{"disk": "ssd"} },
		"after":       func(j *jobs.Job) { j.After = "" },
	} {
		j := full()
		edit(&j)
		digest := j.Definition().Digest()
		if other, taken := seen[digest]; taken {
			t.Errorf("changing %s gives the digest of changing %s", name, other)
		}
		seen[digest] = name
	}
	// Every field of Job but Func must be among the edits; Retry counts three.
	if want := reflect.TypeFor[jobs.Job]().NumField() - 1 - 1 + reflect.TypeFor[jobs.Retry]().NumField(); len(seen)-1 != want {
		t.Errorf("%d settings tried, Job has %d", len(seen)-1, want)
	}
}

func TestDigestOfAnInvalidDefinition(t *testing.T) {
	j := good()
	j.Overlap = 9
	if d := j.Definition().Digest(); len(d) != 16 || d == good().Definition().Digest() {
		t.Errorf("digest %q", d)
	}
}

func TestParseDefinitionRefuses(t *testing.T) {
	for text, words := range map[string]string{
		``:                        "unexpected end",
		`[]`:                      "cannot unmarshal",
		`{"name":"a"}`:            "format version 0 is not valid",
		`{"v":-1}`:                "format version -1 is not valid",
		`{"v":2,"what":"ever"}`:   "format 2, this program knows up to 1; upgrade",
		`{"v":1,"name":"a"}`:      "name and schedule must not be empty",
		`{"v":1,"nam":"a"}`:       "unknown field",
		`{"v":1,"name":"a"} {}`:   "invalid character",
		`{"v":1,"overlap":"huh"}`: `overlap "huh" is not known; use one of skip, queue`,
		`{"v":1,"name":"a","schedule":"@daily","ttl_ms":-1}`:                   "ttl_ms -1 is outside",
		`{"v":1,"name":"a","schedule":"@daily","timeout_ms":9300000000000000}`: "timeout_ms 9300000000000000 is outside",
		`{"v":1,"name":"a","schedule":"@daily","ttl_ms":1.5}`:                  "cannot unmarshal",
	} {
		_, err := jobs.ParseDefinition([]byte(text))
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: error %v, want %q in it", text, err, words)
		}
		if newer := strings.Contains(words, "upgrade"); errors.Is(err, jobs.ErrNewerDefinition) != newer {
			t.Errorf("%s: ErrNewerDefinition is %v", text, !newer)
		}
	}
}

// What is accepted must be stored again without loss.
func FuzzParseDefinition(f *testing.F) {
	for _, j := range []jobs.Job{good(), full()} {
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
		_ = d.Job().Validate()
	})
}
