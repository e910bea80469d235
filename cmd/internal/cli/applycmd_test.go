package cli

import (
	"strings"
	"testing"
)

// What YAML takes for an instant comes as it was written: in a payload, as a key of one, and in lists of days. Bounds are instants.
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
	a := &app{stdin: strings.NewReader(text)}
	file, err := a.readJobs("-")
	if err != nil {
		t.Fatal(err)
	}
	got, err := file.list()
	want := `{"2026-01-02":"2026-01-03","again":"2026-01-03","at":"2026-01-02T03:04:05+01:00","since":"2026-01-02","start_at":"2026-01-04","words":["2026-01-02 03:04:05","2026-01-02"]}`
	if err != nil || string(got[0].Payload) != want || got[0].Except[0] != "2026-12-24" || got[0].StartAt.Unix() != 1_796_112_000 || got[0].EndAt.Unix() != 1_798_761_600 {
		t.Errorf("%v, got %s, except %s, from %s; want %s", err, got[0].Payload, got[0].Except, got[0].StartAt, want)
	}
	for bad, want := range map[string]string{
		"jobs: [": "-: yaml: line", "": "-: has no jobs; write a list jobs", "jobs: [{start_at: soon}]": "-: ",
	} {
		a.stdin = strings.NewReader(bad)
		if _, err := a.readJobs("-"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", bad, err, want)
		}
	}
}
