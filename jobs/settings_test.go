package jobs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
)

// fieldsOf lists the fields of a struct; a nested struct of the same package gives its fields by
// path.
func fieldsOf(of reflect.Type) (names []string) {
	for f := range of.Fields() {
		if f.Type.Kind() == reflect.Struct && f.Type.PkgPath() == of.PkgPath() {
			for _, name := range fieldsOf(f.Type) {
				names = append(names, f.Name+"."+name)
			}
			continue
		}
		names = append(names, f.Name)
	}
	return names
}

// Every field of a job but its function has a row, and every row has its required columns.
func TestTableIsWhole(t *testing.T) {
	t.Parallel()
	fields, rows := fieldsOf(reflect.TypeFor[jobs.Job]()), []string{"Func"}
	names, stored, flags := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range spec.All() {
		rows = append(rows, s.Field)
		if names[s.Name] || stored[s.StoredKey()] || flags[s.Flag()] {
			t.Errorf("%s: another setting has its name, stored key %s or flag %s", s.Name, s.StoredKey(), s.Flag())
		}
		names[s.Name], stored[s.StoredKey()], flags[s.Flag()] = true, true, true
		if s.Sentence == "" || strings.HasSuffix(s.Sentence, ".") {
			t.Errorf("%s: the sentence %q", s.Name, s.Sentence)
		}
		if with, _, _ := strings.Cut(s.With, ": "); with != "" {
			if _, known := spec.Named(with); !known {
				t.Errorf("%s: goes with %q, which is no setting", s.Name, with)
			}
		}
	}
	slices.Sort(fields)
	slices.Sort(rows)
	if !slices.Equal(fields, rows) {
		t.Errorf("a job has the fields %v\nthe table has %v", fields, rows)
	}
}

// every has a value for each setting, as a document.
const every = `{"name":"a","schedule":"@daily","time_zone":"Europe/Berlin","except":["2026-12-24"],"only":["2026-12-01..2026-12-31"],
"start_at":"2026-12-01T00:00:00Z","end_at":"2026-12-31T10:00:00.5Z","jitter":"1m30s","max_runs":7,"overlap":"queue","catch_up":"all","catch_up_max":3,
"start_within":"36h","on_crash":"rerun","rerun_max":2,"timeout":"5m","stall_after":"2s","on_stall":"cancel","ttl":"20s",
"retry":{"max":2,"backoff":"5s","max_backoff":"2m","try_timeout":"500ms","on":"other_node"},"shards":2,"params":["x","<y>"],"placement":"race",
"labels":{"disk":"ssd"},"after":["b","c"],"when":"any","limit":{"group":"db","max":3},"guard":"paper","handler":"report","payload":{"b":1.50,"a":[]},
"managed_by":"tenants","expect":{"success_within":"26h"}}`

func decodeJob(t *testing.T, text string) (j jobs.Job, d spec.Decoded) {
	t.Helper()
	n, err := spec.ParseJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	d = jobs.Settings.Decode(n, &j, nil)
	return j, d
}

// A document that has every setting is read, and written again as it was.
func TestDocumentIsReadAndWritten(t *testing.T) {
	t.Parallel()
	j, d := decodeJob(t, every)
	if len(d.Faults) > 0 || d.Lines["retry.on"] != 4 || d.Lines["managed_by"] != 6 {
		t.Errorf("%+v", d)
	}
	for _, s := range spec.All() {
		if !jobs.Settings.Given(&j, s) {
			t.Errorf("%s was not read", s.Name)
		}
	}
	text, err := jobs.Settings.Encode(&j, false)
	if want := strings.ReplaceAll(strings.ReplaceAll(every, "\n", ""), "<y>", `\u003cy\u003e`); err != nil || string(text) != want {
		t.Errorf("written\n%s, %v; want\n%s", text, err, want)
	}
	back, err := jobs.ParseDefinition(mustText(json.Marshal(withoutAfter(j).Definition())))
	if err != nil {
		t.Fatal(err)
	}
	want := withoutAfter(j)
	if differ := jobs.Settings.Diff(&back.Job, &want); len(differ) > 0 {
		t.Errorf("stored and read, it differs in %v", differ)
	}
}

func mustText(text []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return text
}

// withoutAfter removes the settings that a schedule excludes.
func withoutAfter(j jobs.Job) jobs.Job {
	j.After, j.When = nil, 0
	return j
}

// All settings of the zero job are shown, as nothing.
func TestAllSettingsAreShown(t *testing.T) {
	t.Parallel()
	text := mustText(jobs.Settings.Encode(&jobs.Job{}, true))
	var shown map[string]json.RawMessage
	if err := json.Unmarshal(text, &shown); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"name": `""`, "except": "[]", "start_at": "null", "jitter": "null", "max_runs": "0", "overlap": `"skip"`, "retry": "null",
		"labels": "{}", "after": "[]", "payload": "null", "limit": "null", "expect": "null",
	} {
		if string(shown[key]) != want {
			t.Errorf("%s: %s, want %s", key, shown[key], want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[]`:                                "1 : want a section of settings, found a list",
		"{\n\"tmieout\": \"1m\"}":           "2 tmieout: unknown key; did you mean timeout",
		`{"ttl_ms": 15000}`:                 "1 ttl_ms: unknown key; a duration has its unit: write ttl: 15s",
		`{"retry": {"backoff_ms": 90000}}`:  "1 retry.backoff_ms: unknown key; a duration has its unit: write backoff: 1m30s",
		`{"timeout_ms": "soon"}`:            "1 timeout_ms: unknown key; a duration has its unit: write timeout: 90s",
		`{"backoff": "1s"}`:                 "1 backoff: unknown key; did you mean retry.backoff",
		`{"retry": {"timeout": "1s"}}`:      "1 retry.timeout: unknown key; did you mean try_timeout",
		`{"retry": 3}`:                      "1 retry: want a section with max, backoff, max_backoff, try_timeout, on, found 3",
		`{"ttl": 15}`:                       "1 ttl: 15 has no unit; did you mean 15s",
		`{"ttl": 90000}`:                    "1 ttl: 90000 has no unit; did you mean 1m30s",
		`{"ttl": "106752d"}`:                "1 ttl: 106752d is too long; the longest duration is 2562047h",
		`{"ttl": "9223372036854775808ns"}`:  "1 ttl: 9223372036854775808ns is too long; the longest duration is 2562047h",
		`{"ttl": ["15s"]}`:                  "1 ttl: want a duration such as 90s, 5m or 2d, found a list",
		`{"ttl": null}`:                     "1 ttl: has no value; write one, or leave the setting out",
		`{"shards": "2"}`:                   `1 shards: want a whole number, found the text "2"`,
		`{"shards": 1.5}`:                   `1 shards: "1.5" is not a whole number`,
		`{"overlap": "skpi"}`:               `1 overlap: "skpi" is not one of skip, queue, replace, allow; did you mean skip`,
		`{"start_at": "2026-12-01"}`:        `1 start_at: "2026-12-01" is not an instant with its offset, such as 2026-12-24T08:00:00Z`,
		`{"params": "x"}`:                   `1 params: want a list of texts, found the text "x"`,
		`{"params": [[]]}`:                  "1 params[0]: want a text, found a list",
		`{"labels": ["x"]}`:                 "1 labels: want a section of texts, found a list",
		`{"labels": {"x": {}}}`:             "1 labels.x: want a text, found a section",
		`{"schedule": "redis://u:secret@h"`: "",
	} {
		if want == "" {
			if _, err := spec.ParseJSON([]byte(text)); err == nil || !strings.Contains(err.Error(), "line 1: ") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		_, d := decodeJob(t, text)
		if len(d.Faults) != 1 {
			t.Errorf("%s: %v", text, d.Faults)
			continue
		}
		f := d.Faults[0]
		if got := fmt.Sprintf("%d %s: %s", f.Line, f.Setting, f.Msg); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
	}
}

// One name may stand for a list of one, a number for a text, and null for a section or a list with
// nothing in it.
func TestDecodeTakes(t *testing.T) {
	t.Parallel()
	j, d := decodeJob(t, `{"after": "b", "labels": {"zone": 7}, "params": [1, true], "retry": null, "except": null, "ttl": "1d12h"}`)
	if len(d.Faults) > 0 || !slices.Equal(j.After, []string{"b"}) || j.Labels["zone"] != "7" || !slices.Equal(j.Params, []string{"1", "true"}) || j.TTL != 36*time.Hour {
		t.Errorf("%+v, %v", j, d.Faults)
	}
}

func TestParseJSONRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                         "line 1: the JSON ends too early",
		"{\n\"a\": 1,\n\"a\": 2}":  `line 3: the key "a" stands there twice; keep one`,
		"{}\n{}":                   "line 2: something follows the value; write one",
		strings.Repeat("[", 10000): "line 1: more than 100 lists and objects stand in each other",
	} {
		if _, err := spec.ParseJSON([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%.20s: %v, want %s", text, err, want)
		}
	}
}

// A document that shows all settings is read as the job that it was written from: null is no value
// there.
func TestShownDocumentIsRead(t *testing.T) {
	t.Parallel()
	for _, j := range []jobs.Job{{}, {Name: "a", Retry: jobs.Retry{Max: 1}, Payload: []byte(`{"a":null}`)}} {
		back, err := jobs.ParseShown(mustText(jobs.Settings.Encode(&j, true)))
		if differ := jobs.Settings.Diff(&j, &back); err != nil || len(differ) > 0 {
			t.Errorf("%v, %v", differ, err)
		}
	}
	for _, text := range []string{"[]", "{", `null`} {
		if _, err := jobs.ParseShown([]byte(text)); !strings.HasPrefix(fmt.Sprint(err), "job: ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// A document is read with all its faults, and what it sets without use counts as left out.
func TestParseDocument(t *testing.T) {
	t.Parallel()
	j, err := jobs.ParseDocument([]byte(`{"name": "a", "catch_up_max": 10, "own": 1}`), func(key, value *spec.Node) bool { return key.Text == "own" && value.Text == "1" })
	if err != nil || j.Name != "a" || j.CatchUpMax != 0 {
		t.Errorf("%+v, %v", j, err)
	}
	j, err = jobs.ParseDocument([]byte(`{"name": "a", "ttl": 3, "own": 1}`), nil)
	if err == nil || j.Name != "a" || !strings.HasPrefix(err.Error(), "ttl: 3 has no unit; did you mean 3s\nown: unknown key") || !errors.As(err, new(*jobs.FieldError)) {
		t.Errorf("%+v, %v", j, err)
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	j := jobs.Job{CatchUpMax: 10, RerunMax: 4, Retry: jobs.Retry{Backoff: time.Second}}
	jobs.Settings.Idle(&j)
	if j.CatchUpMax != 0 || j.RerunMax != 4 || j.Retry.Backoff != 0 {
		t.Errorf("%+v", j)
	}
}

// A document may have some of the settings, and further keys beside them, which hints name too.
func TestSomeSettings(t *testing.T) {
	t.Parallel()
	only := jobs.Settings.Only(func(s spec.Setting) bool { return !s.Handled }, "exec", "http")
	for text, want := range map[string]string{
		`{"exce": 1}`:    "exce: unknown key; did you mean exec",
		`{"handler": 1}`: "handler: unknown key; known here: name, ",
		`{"colour": 1}`:  "expect, exec, http",
	} {
		n, err := spec.ParseJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if f := only.Decode(n, &jobs.Job{}, nil).Faults; len(f) != 1 || !strings.Contains(f[0].Setting+": "+f[0].Msg, want) {
			t.Errorf("%s: %v, want %s", text, f, want)
		}
	}
	j := jobs.Job{Name: "a", Params: []string{"x"}, Timeout: time.Minute, Labels: map[string]string{"b": "c"}, Payload: []byte("7"), Retry: jobs.Retry{Max: 2}}
	some := []string{"overlap", "timeout", "ttl", "start_at", "retry.max", "retry.backoff", "retry.on", "limit.group", "params", "after"}
	text, err := jobs.Settings.EncodeSome(&j, func(s spec.Setting) bool { return slices.Contains(some, s.Name) })
	if want := `{"overlap":"skip","timeout":"1m","retry":{"max":2,"on":"same_node"},"params":["x"],"after":[],"limit":{"group":""}}`; err != nil || string(text) != want {
		t.Errorf("%s, %v; want %s", text, err, want)
	}
	for name, want := range map[string]string{
		"name": `"a"`, "schedule": `""`, "overlap": `"skip"`, "timeout": "1m", "ttl": "0s", "start_at": `""`, "retry.max": "2", "params": "[x]", "after": "[]",
		"labels": "map[b:c]", "payload": "7",
	} {
		s, _ := spec.Named(name)
		if got := jobs.Settings.Show(&j, s); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A number that JSON has not is a fault at its place in the payload.
func TestPayloadOfYAML(t *testing.T) {
	t.Parallel()
	number := &spec.Node{Kind: spec.NodeNumber, Line: 3, Text: "0x10"}
	list := &spec.Node{Kind: spec.NodeList, Line: 2, Items: []*spec.Node{{Kind: spec.NodeBool, Line: 2, Text: "True"}, number}}
	payload := &spec.Node{Kind: spec.NodeMap, Line: 1, Keys: []*spec.Node{{Kind: spec.NodeText, Text: "b"}}, Items: []*spec.Node{list}}
	doc := &spec.Node{Kind: spec.NodeMap, Line: 1, Keys: []*spec.Node{{Kind: spec.NodeText, Text: "payload"}}, Items: []*spec.Node{payload}}
	var j jobs.Job
	if f := jobs.Settings.Decode(doc, &j, nil).Faults; len(f) != 1 || f[0].Setting != "payload.b[1]" || f[0].Line != 3 {
		t.Errorf("%+v", f)
	}
	if number.Text = "16"; len(jobs.Settings.Decode(doc, &j, nil).Faults) > 0 || string(j.Payload) != `{"b":[true,16]}` {
		t.Errorf("%s", j.Payload)
	}
}

// Keys and words of a newer version are left out, the rest is read.
func TestShownByANewerVersion(t *testing.T) {
	t.Parallel()
	j, err := jobs.ParseShown([]byte(`{"name":"a","overlap":"later","ttl":null,"retry":{"max":1,"new":2,"on":"both"},"other":[1],"labels":{"x":"y"}}`))
	want := jobs.Job{Name: "a", Retry: jobs.Retry{Max: 1}, Labels: map[string]string{"x": "y"}}
	if differ := jobs.Settings.Diff(&j, &want); err != nil || len(differ) > 0 {
		t.Errorf("%+v, %v differs in %v", j, err, differ)
	}
	if _, err := jobs.ParseShown([]byte(`{"name":"a","retry":{"max":"x"}}`)); err == nil {
		t.Error("a value that is no number is read")
	}
}

// The zero time of any zone is no bound.
func TestZeroTimeOfAZone(t *testing.T) {
	t.Parallel()
	plain := jobs.Job{Name: "a", Schedule: "@daily"}
	zoned := plain
	zoned.StartAt, zoned.EndAt = time.Time{}.In(time.FixedZone("CET", 3600)), time.Time{}.Local()
	if got, want := zoned.Definition().Digest(), plain.Definition().Digest(); got != want {
		t.Errorf("digest %s, want %s of the job without bounds", got, want)
	}
	text := mustText(json.Marshal(zoned.Definition()))
	if _, err := jobs.ParseDefinition(text); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	if text := mustText(jobs.Settings.Encode(&zoned, true)); !strings.Contains(string(text), `"start_at":null,"end_at":null`) {
		t.Errorf("shown as %s", text)
	}
}
