package command

import (
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/schedtest/ledgertest"
)

func TestParseWhen(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]When{
		"": {}, "+10m": {from: 10 * time.Minute, relative: true}, "-2h30m": {from: -150 * time.Minute, relative: true},
		"10m": {from: -10 * time.Minute, relative: true}, "2d": {from: -48 * time.Hour, relative: true}, "+1d12h": {from: 36 * time.Hour, relative: true},
		"2026-01-02t15:04:05z":          {at: time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)},
		"2026-01-02T15:04:05.123+01:00": {at: time.Date(2026, 1, 2, 14, 4, 5, 123e6, time.UTC)},
		"2026-11-24":                    {at: time.Date(2026, 11, 23, 23, 0, 0, 0, time.UTC)},
		"2026-07-24 22:00":              {at: time.Date(2026, 7, 24, 20, 0, 0, 0, time.UTC)},
		"2026-11-24T22:00:01":           {at: time.Date(2026, 11, 24, 21, 0, 1, 0, time.UTC)},
	} {
		got, err := ParseWhen("--since", text, berlin, Ago)
		if err != nil || !got.at.Equal(want.at) || got.from != want.from || got.relative != want.relative {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
	if got, err := ParseWhen("--at", "10m", berlin, FromNow); err != nil || got.from != 10*time.Minute {
		t.Errorf("--at 10m: %+v, %v", got, err)
	}
	for _, text := range []string{"+", "-", "+10", "--10m", "+-10m", "15:04", "2026-13-02", "2026-13-02T15:04:05Z", "now", "0001-01-01T00:00:00Z"} {
		if got, err := ParseWhen("--at", text, time.UTC, FromNow); ExitCode(err) != ExitUsage {
			t.Errorf("%q: got %+v, %v", text, got, err)
		}
	}
}

// Ticks are due by Redis' clock: ten minutes ago is by that clock too.
func TestInstantByRedisClock(t *testing.T) {
	server, client := redistest.StartEmbedded(t)
	server.StepClock(-2 * time.Hour)
	if _, err := ledgertest.Open(t.Context(), client, ledgertest.Config{}); err != nil {
		t.Fatal(err)
	}
	in, err := ops.New(client, "")
	if err != nil {
		t.Fatal(err)
	}
	at, err := Tool{Ctx: t.Context(), Client: in}.Instant(&TimeFlag{at: When{from: -10 * time.Minute, relative: true}})
	if err != nil || time.Since(at) < 2*time.Hour {
		t.Errorf("got %s, %v", at, err)
	}
}
