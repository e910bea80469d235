package config

import (
	"encoding"
	"errors"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/escapement/escapement/cmd/internal/testkit"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/httpjob"
	"github.com/escapement/escapement/jobs/spec"
)

// TestSampleEqualsDefaults reads the repository's config.yaml: without its jobs it equals an absent
// file.
func TestSampleEqualsDefaults(t *testing.T) {
	l, err := Load(Source{File: "../../../config.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Jobs) < 3 {
		t.Errorf("only %d jobs to watch", len(l.Jobs))
	}
	got, want := l.Config, Default()
	got.Jobs = nil
	// A list or map written as empty is as good as one left out.
	got.Redis.Addrs, got.Node.Labels, got.Notify.Targets = nil, nil, nil
	if !reflect.DeepEqual(got, want) {
		t.Errorf("config.yaml differs from the defaults:\n got %+v\nwant %+v", got, want)
	}
	for _, leaf := range Leaves(&l.Config) {
		if !l.From.given(leaf.Path) {
			t.Errorf("config.yaml does not show %s", leaf.Path)
		}
	}
}

// TestSampleShowsJobSettings finds each setting of a job in the sample, in use or
// in a comment.
func TestSampleShowsJobSettings(t *testing.T) {
	text, err := os.ReadFile("../../../config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, s := range spec.All() {
		if isEntrySetting(s) {
			keys = append(keys, s.Key())
		}
	}
	for _, section := range []any{Exec{}, Call{}, Target{}, Webhook{}} {
		for _, s := range settings(reflect.ValueOf(section)) {
			keys = append(keys, s.key)
		}
	}
	for _, key := range keys {
		if !regexp.MustCompile(`(?m)(^[ #-]+|[{,] ?)` + key + `:( |$)`).Match(text) {
			t.Errorf("config.yaml does not show %s", key)
		}
	}
}

// TestWords compares the words that config.go allows with the words that their readers accept.
func TestWords(t *testing.T) {
	understand := map[string]func(string) error{
		"overlap":  text(new(jobs.Overlap)),
		"catch_up": text(new(jobs.CatchUp)),
		"method":   func(w string) error { return httpjob.Options{Method: w, URL: "http://h"}.Validate() },
		"level":    func(w string) error { _, err := zerolog.ParseLevel(w); return err },
	}
	seen := map[string]bool{}
	for _, section := range []any{Call{}, Defaults{}, Log{}} {
		for _, s := range settings(reflect.ValueOf(section)) {
			check, ok := understand[s.key]
			if !ok {
				continue
			}
			seen[s.key] = true
			if len(s.words) < 2 {
				t.Errorf("%s has no words", s.key)
			}
			if row, known := spec.Named(s.key); known && !slices.Equal(row.Words, s.words) {
				t.Errorf("defaults.%s has the words %v, and the setting %v", s.key, s.words, row.Words)
			}
			for _, w := range s.words {
				if err := check(w); err != nil {
					t.Errorf("%s: %s: %v", s.key, w, err)
				}
			}
		}
	}
	if len(seen) != len(understand) {
		t.Errorf("only %v were looked at", seen)
	}
}

func text(into encoding.TextUnmarshaler) func(string) error {
	return func(w string) error { return into.UnmarshalText([]byte(w)) }
}

// TestEverySettingIsReadable finds a field of a type that the decoder, the
// environment or the printer does not know.
func TestEverySettingIsReadable(t *testing.T) {
	c := Default()
	for _, l := range Leaves(&c) {
		if l.key == "" {
			t.Errorf("a field of %s has no yaml tag", l.Path)
		}
		sample := map[bool]string{true: "5s", false: "5"}[l.value.Type() == durationType]
		if l.value.Kind() == reflect.Map {
			sample = "k=5"
		}
		if l.Env() == "" {
			t.Errorf("%s has no variable", l.Path)
		}
		if err := setFlat(l.value, nil, sample); err != nil {
			t.Errorf("%s: %v", l.Path, err)
		}
	}
	for _, s := range slices.Concat(settings(reflect.ValueOf(&Exec{}).Elem()), settings(reflect.ValueOf(&Call{}).Elem())) {
		switch s.value.Kind() {
		case reflect.Struct, reflect.Pointer, reflect.Slice, reflect.Map, reflect.Bool:
		default:
			if err := setText(s.value, nil, map[bool]string{true: "5s", false: "5"}[s.value.Type() == durationType]); err != nil {
				t.Errorf("jobs[].%s: %v", s.key, err)
			}
		}
	}
	if err := Print(io.Discard, &c); err != nil {
		t.Error(err)
	}
}

// TestPrintMasks keeps passwords and the environment of commands out of the output.
func TestPrintMasks(t *testing.T) {
	l, err := Load(Source{File: testkit.Write(t, `
redis: {url: "redis://user:hunter2@localhost:6379/3", next: "rediss+cluster://:hunter2@h1,h2:7000/?read_timeout=2s"}
node: {labels: {zone: "yes", empty: ""}}
http: {operator_token: hunter2hunter2, viewer_token: hunter2-hunter2, users: {ann: "viewer:hunter2hunter2"}}
notify:
  targets:
    - name: team
      webhook: {url: "https://hooks.example.org/services/hunter2", headers: {X-Key: hunter2}, body: '{"key": "hunter2", "text": "{{text}}"}'}
    - {name: pager, on: [failed], messages: each, command: [./tell]}
handlers:
  report: {exec: {command: [./report], env: {PASSWORD: hunter2}}}
  hook: {http: {url: "https://hunter2:x@h/p", headers: {X-Key: hunter2}, body: hunter2}}
jobs:
  - name: a
    schedule: "@hourly"
    ttl: 90s
    overlap: skip
    labels: {disk: "1", "on": "yes"}
    exec: {command: [sh, -c, "echo \"a: #b\"\necho"], env: {PASSWORD: hunter2, "1": ""}}
  - name: b
    after: a
    retry: {max: 2, max_backoff: 90s}
    http: {method: PUT, url: "https://hunter2:x@h:8443/p/q?key=hunter2", headers: {Authorization: hunter2}, body: hunter2, expect: 204}
  - name: c
    schedule: "H * * * *"
    http: {url: "http://h/p"}
`)})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Print(&out, &l.Config); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hunter2") {
		t.Error("a secret is printed")
	}
	testkit.Golden(t, "testdata/print.want", out.String())
	if l.Jobs[0].work.Exec.Env["PASSWORD"] != "hunter2" || l.Jobs[1].work.HTTP.Body != "hunter2" || l.Jobs[1].work.HTTP.Headers["Authorization"] != "hunter2" {
		t.Error("masking changed the configuration itself")
	}
	if h, w := l.HTTP, l.Notify.Targets[0].Webhook; h.OperatorToken != "hunter2hunter2" || h.Users["ann"] != "viewer:hunter2hunter2" || w.Headers["X-Key"] != "hunter2" {
		t.Error("masking changed the configuration itself")
	}
	printed := testkit.Write(t, out.String())
	var wrong Error
	if _, err := Load(Source{File: printed}); !errors.As(err, &wrong) || len(wrong) != 3 {
		t.Errorf("what stands in place of three secrets is taken for them: %v", err)
	}
	l.HTTP.OperatorToken, l.HTTP.ViewerToken, l.HTTP.Users = "", "", map[string]string{} // which cannot be read again
	sameAfterPrinting(t, testkit.Write(t, ""), l)
}
