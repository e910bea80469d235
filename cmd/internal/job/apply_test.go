package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ops"
)

// A text that YAML reads as an instant keeps its form: in a payload, as a payload's key, and in lists
// of days. Bounds are instants.
func TestDatesInJobsFiles(t *testing.T) {
	t.Parallel()
	text := `jobs:
- name: a
  handler: h
  schedule: "@daily"
  payload: {since: 2026-01-02, at: 2026-01-02T03:04:05+01:00, words: [2026-01-02 03:04:05, "2026-01-02"], start_at: 2026-01-04, 2026-01-02: &d 2026-01-03, again: *d}
  except: [2026-12-24]
  start_at: 2026-12-01T09:00:00+01:00
  end_at: 2027-01-01
`
	a := &command.App{Stdin: strings.NewReader(text)}
	got, err := readJobs(a, "-")
	want := `{"since":"2026-01-02","at":"2026-01-02T03:04:05+01:00","words":["2026-01-02 03:04:05","2026-01-02"],"start_at":"2026-01-04","2026-01-02":"2026-01-03","again":"2026-01-03"}`
	if err != nil || string(got[0].Payload) != want || got[0].Except[0] != "2026-12-24" || got[0].StartAt.Unix() != 1_796_112_000 || got[0].EndAt.Unix() != 1_798_761_600 {
		t.Errorf("%v, got %s, except %s, from %s; want %s", err, got[0].Payload, got[0].Except, got[0].StartAt, want)
	}
}

// A fault in a file is refused with the line, the job and the setting, in JSON as in YAML.
func TestFaultsInJobsFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"jobs: [":                        "yaml: line",
		"":                               "has no jobs; write a list jobs",
		"[]":                             "has no jobs; write a list jobs",
		"jobs: {}":                       "has no jobs; write a list jobs",
		`{"jobs": {}}`:                   "has no jobs; write a list jobs",
		"jobz: []":                       `line 1: "jobz" is not known here; the file has a list jobs`,
		"{\n\"jobz\": []}":               `line 2: "jobz" is not known here; the file has a list jobs`,
		"jobs: [{start_at: soon}]":       `line 1: start_at: "soon" is not an instant with its offset, such as`,
		"jobs: [7]":                      "line 1: want a section of settings, found 7",
		"jobs:\n- name: a\n  timeout: 3": "line 3: job a: timeout: 3 has no unit; did you mean 3s",
		"{\"jobs\": [\n{\"name\": \"a\"},\n\n{\"name\": \"b\",\n \"timeout_ms\": 3000}]}": "line 5: job b: timeout_ms: unknown key; a duration has its unit: write timeout: 3s",
		"jobs:\n- {name: a}\n- {name: b, retry: {backoff_ms: 90}}":                        "line 3: job b: retry.backoff_ms: unknown key; a duration has its unit: write backoff: 90ms",
		"jobs:\n- {name: a, colour: red,\n   overlap: never}":                             "line 2: job a: colour: unknown key; known here: name, ",
		"jobs:\n- {name: b, colour: red,\n   overlap: never}":                             `line 3: job b: overlap: "never" is not one of skip, queue, replace, allow`,
		"{\"jobs\": [{\"name\": \"a\",\n\"name\": \"b\"}]}":                               `line 2: the key "name" stands there twice; keep one`,
		"jobs: [{name: a, payload: {b: [1,\n 0x10]}}]":                                    "line 2: job a: payload.b[1]: 0x10 is not a number as JSON has them; write its decimal digits, or",
		"jobs: [{name: a, payload: {b: 0123}}]":                                           "job a: payload.b: 0123 is not a number",
		"jobs: [{name: a, payload: {b: .inf}}]":                                           "job a: payload.b: .inf is not a number",
		"jobs: [{name: a, payload: {1: x}}]":                                              `job a: payload: the key "1" is no text; write it in quotes`,
		"jobs: [{name: a, payload: {b: 1, b: 2}}]":                                        `mapping key "b" already defined`,
	} {
		a := &command.App{Stdin: strings.NewReader(text)}
		if _, err := readJobs(a, "-"); !errors.Is(err, ops.ErrRefused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Of many faults the first are printed.
func TestManyFaultsInJobsFiles(t *testing.T) {
	t.Parallel()
	for _, job := range []string{"- {name: a, colour: red}\n", "- {name: a, payload: 0x1}\n", "- {name: a, overlap: never}\n"} {
		a := &command.App{Stdin: strings.NewReader("jobs:\n" + strings.Repeat(job, 1000))}
		_, err := readJobs(a, "-")
		if err == nil || !strings.HasSuffix(err.Error(), "\nand 980 faults more") {
			t.Errorf("%.2000v", err)
		}
	}
}

// Payloads come through export and apply as they are: numbers by their digits, texts by their
// letters, keys in their order.
func TestExportedPayloads(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{
		`{"z":1234567890123.123456,"a":18446744073709551616,"m":2.50,"e":1e3,"E":1E+400,"n":-0,"neg":-1.0e-7}`,
		`{"é":"\u00e9","two":"\ud83d\ude00","s":"1E400","i":"12","d":"2026-01-02","null":null,"nul":"null","yes":"yes","t":true,"tt":"true","tilde":"~"}`,
		`{"":"","l":"a\nb\n","sp":" a\n b ","tab":"\tx\n\ty","nl":"\n","nls":"a\n\n\n","cr":"a\rb\r\n","zero":"\u0000\u0007","bom":"\ufeffx","ls":"\u2028 \u0085"}`,
		`{"a: b":"c: d # e","<<":{"x":1},"- x":"- y","?":"!","*":"&a","%":"@","hash":"# x","q":"\"'","b":"\\","html":"<a&b>"}`,
		`[[],{},[{}],[[1,[2]]],"",0]`, `"text"`, `7.10`, `null`, `{"0x10":"0x10","1_0":"1_0","0o7":"0o7",".5":".5","1:20":"1:20","=":"=","n":"n","+1":"+1","0777":"0777",".inf":".inf"}`,
	} {
		j := jobs.Job{Name: "a", Handler: "h", Schedule: "@daily", Payload: []byte(payload), TTL: time.Second}
		shown, err := storedDocuments([]ops.StoredJob{{Job: j.Definition().Job, Version: time.UnixMilli(1)}}, true)
		if err != nil {
			t.Fatal(err)
		}
		view := map[string]any{"jobs": shown}
		inJSON, err := json.Marshal(view)
		if err != nil {
			t.Fatal(err)
		}
		inYAML, err := config.YAML(view)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{inJSON, inYAML} {
			a := &command.App{Stdin: bytes.NewReader(text)}
			again, err := readJobs(a, "-")
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			if len(settingsThatDiffer(j, again[0])) > 0 {
				t.Errorf("%v differ: %s\nis %s, through\n%s", settingsThatDiffer(j, again[0]), payload, again[0].Payload, text)
			}
			if plain := !strings.Contains(payload, `\`) && !strings.Contains(payload, "<"); plain && string(again[0].Payload) != payload {
				t.Errorf("%s has become %s", payload, again[0].Payload)
			}
		}
	}
}

// Jobs that merge the settings of an anchor have them in JSON too; their own win.
func TestMergedSettings(t *testing.T) {
	t.Parallel()
	a := &command.App{Stdin: strings.NewReader("jobs:\n- &base {name: a, handler: h, schedule: '@daily', payload: {b: 1}}\n- {<<: *base, name: b}\n- {name: c, <<: [{handler: g}, *base]}\n- *base\n")}
	list, err := readJobs(a, "-")
	if err != nil || list[1].Name != "b" || list[1].Handler != "h" || string(list[1].Payload) != `{"b":1}` || list[2].Handler != "g" || list[2].Schedule != "@daily" || list[3].Name != "a" {
		t.Errorf("%v: %+v", err, list)
	}
}

// The settings in which two jobs differ are named. Equal payloads do not differ, however they are
// written.
func TestSettingsThatDiffer(t *testing.T) {
	t.Parallel()
	a := jobs.Job{Name: "a", Handler: "h", Schedule: "@daily", Payload: []byte(`{"x": 2.50, "y": "é"}`), Timeout: time.Second, Retry: jobs.Retry{Max: 2}}
	same, other := a, a
	same.Payload = []byte(`{"y":"\u00e9","x":2.50}`)
	other.Payload, other.Timeout, other.Labels, other.Retry.Max = []byte(`{"x": 2.5, "y": "é"}`), 0, map[string]string{"disk": "fast"}, 3
	if d := settingsThatDiffer(a, same); len(d) > 0 {
		t.Errorf("the same: %v differ", d)
	}
	if d := settingsThatDiffer(a, other); !slices.Equal(d, []string{"timeout", "retry.max", "labels", "payload"}) {
		t.Errorf("%v differ", d)
	}
}
