package cli

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/schedtest/ledgertest"
)

func TestParseWhen(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]when{
		"": {}, "+10m": {from: 10 * time.Minute, relative: true}, "-2h30m": {from: -150 * time.Minute, relative: true},
		"10m": {from: -10 * time.Minute, relative: true}, "2d": {from: -48 * time.Hour, relative: true}, "+1d12h": {from: 36 * time.Hour, relative: true},
		"2026-01-02t15:04:05z":          {at: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)},
		"2026-01-02T15:04:05.123+01:00": {at: time.Date(2026, 1, 2, 14, 4, 5, 123e6, time.UTC)},
		"2026-11-24":                    {at: time.Date(2026, 11, 23, 23, 0, 0, 0, time.UTC)},
		"2026-07-24 22:00":              {at: time.Date(2026, 7, 24, 20, 0, 0, 0, time.UTC)},
		"2026-11-24T22:00:01":           {at: time.Date(2026, 11, 24, 21, 0, 1, 0, time.UTC)},
	} {
		got, err := parseWhen("--since", text, berlin, ago)
		if err != nil || !got.at.Equal(want.at) || got.from != want.from || got.relative != want.relative {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	if got, err := parseWhen("--at", "10m", berlin, fromNow); err != nil || got.from != 10*time.Minute {
		t.Errorf("--at 10m: %+v, %v", got, err)
	}
	for _, text := range []string{"+", "-", "+10", "--10m", "+-10m", "15:04", "2026-13-02", "2026-13-02T15:04:05Z", "now", "0001-01-01T00:00:00Z"} {
		if got, err := parseWhen("--at", text, time.UTC, fromNow); exitCode(err) != exitUsage {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

// Ticks are due by Redis' clock: ten minutes ago is by that clock too.
func TestSinceByRedisClock(t *testing.T) {
	server, client := redistest.StartEmbedded(t)
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
	if got, err := l.Define(t.Context(), now.UnixMilli(), []ledgertest.Definition{def}); err != nil || got[0].Status != "created" {
		t.Fatal(got, err)
	}
	in, err := ops.New(client, "")
	if err != nil {
		t.Fatal(err)
	}
	id, err := in.Trigger(t.Context(), "job", ops.TriggerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	since, err := parseWhen("--since", "10m", time.UTC, ago)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	a := &app{stdout: &out, stderr: io.Discard}
	if err := a.runsList(tool{ctx: t.Context(), in: in}, ops.RunFilter{}, since, time.UTC); err != nil || !strings.Contains(out.String(), id) {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]string{
		"15s": "15s", "0": "0s", "1h30m": "1h30m", "-2s": "-2s", "3600s": "1h", "61s": "1m1s", "3601s": "1h0m1s", "0.5s": "500ms",
		"15":  "15 has no unit; did you mean 15s",
		"-15": "-15 has no unit; did you mean -15s",
		"7d":  "168h", "-1d12h": "-36h", "1d-2h": `"1d-2h" is not a duration; write a number and a unit, like 500ms, 15s, 2m or 2d`,
		"2 D": `"2 D" is not a duration; did you mean 2d`, "999999d": "999999d is too long; the longest duration is 2562047h",
		"2 M":   `"2 M" is not a duration; did you mean 2m`,
		"15S":   `"15S" is not a duration; did you mean 15s`,
		"soon":  `"soon" is not a duration; write a number and a unit, like 500ms, 15s, 2m or 2d`,
		"":      `"" is not a duration; write a number and a unit, like 500ms, 15s, 2m or 2d`,
		"9999h": "9999h", "9999999999h": "9999999999h is too long; the longest duration is 2562047h",
		"-3000000h": "-3000000h is too long; the longest duration is 2562047h", "2562047h30m": "2562047h30m", "1h9999999999.5h": "1h9999999999.5h is too long; the longest duration is 2562047h",
		"3000000H": `"3000000H" is not a duration; write a number and a unit, like 500ms, 15s, 2m or 2d`,
	} {
		d, err := spec.ParseDuration(text)
		got := spec.FormatDuration(d)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
