package main

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/schedtest/ledgertest"
)

func TestParseWhen(t *testing.T) {
	for text, want := range map[string]when{
		"": {}, "+10m": {from: 10 * time.Minute, relative: true}, "-2h30m": {from: -150 * time.Minute, relative: true},
		"2026-01-02t15:04:05z":          {at: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)},
		"2026-01-02T15:04:05.123+01:00": {at: time.Date(2026, 1, 2, 14, 4, 5, 123e6, time.UTC)},
	} {
		got, err := parseWhen("--at", text)
		if err != nil || !got.at.Equal(want.at) || got.from != want.from || got.relative != want.relative {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"10m", "+", "-", "+10", "15:04", "2026-01-02", "2026-01-02T15:04:05", "2026-13-02T15:04:05Z", "now"} {
		if got, err := parseWhen("--at", text); exitCode(err) != exitUsage {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

// Ticks are due by Redis' clock: ten minutes ago is by that clock too.
func TestSinceByRedisClock(t *testing.T) {
	server, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client := server.Client()
	t.Cleanup(func() { _ = client.Close() })
	server.StepClock(-2 * time.Hour)
	l, err := ledgertest.Open(t.Context(), client, ledgertest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := jobs.Job{Name: "job", Schedule: "@yearly"}.Definition()
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now().Add(-2 * time.Hour)
	def := ledgertest.Definition{Job: "job", Digest: d.Digest(), Text: text, Cursor: now.Add(time.Hour).UnixMilli()}
	if got, err := l.Define(t.Context(), now.UnixMilli(), []ledgertest.Definition{def}); err != nil || got[0].Word != "created" {
		t.Fatal(got, err)
	}
	in, err := scheduler.NewClient(client, "")
	if err != nil {
		t.Fatal(err)
	}
	id, err := in.Trigger(t.Context(), "job", scheduler.TriggerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	since, err := parseSince("10m")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	a := &app{stdout: &out, stderr: io.Discard}
	if err := a.runsList(tool{t.Context(), in, nil}, scheduler.RunFilter{}, since); err != nil || !strings.Contains(out.String(), id) {
		t.Errorf("got %q, %v", out.String(), err)
	}
}
