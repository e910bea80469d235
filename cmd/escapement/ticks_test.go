package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler"
)

func TestTickLines(t *testing.T) {
	var out strings.Builder
	tickLines(&out).Started(scheduler.RunEvent{
		Job: "report", Tick: time.Date(2026, 1, 2, 16, 4, 5, 0, time.FixedZone("", 3600)), Node: "dev-2",
		Token: 1795267334003305, Lag: 840 * time.Microsecond,
	})
	want := "report        tick 2026-01-02T15:04:05.000Z  node dev-2  token 1795267334003305  lag 0.8ms\n"
	if out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	line := tickLine(scheduler.RunEvent{Job: "move", Tick: time.UnixMilli(0), Node: "a", Token: 7, Shard: 3, Shards: 16})
	if want := "move          tick 1970-01-01T00:00:00.000Z  shard 3 of 16  node a  token 7  lag 0.0ms"; line != want {
		t.Errorf("got  %s\nwant %s", line, want)
	}
}

// TestTickLinesAreNotLoggedToo logs as the scheduler does.
func TestTickLinesAreNotLoggedToo(t *testing.T) {
	var out strings.Builder
	log := slog.New(quietRuns{Handler: newLogger(&out, Log{Level: "info", Format: "json"}).Handler()}).With("node", "dev-2")
	log.Info("run started", "job", "report", "lag", 840*time.Microsecond)
	log.With("job", "report", "outcome", "succeeded").Info("run ended")
	log.WithGroup("more").Info("run ended", "outcome", "succeeded")
	if out.Len() > 0 {
		t.Errorf("logged what the tick lines say:\n%s", out.String())
	}
	log.With("job", "report", "outcome", "failed").Warn("run ended", "duration", 2*time.Second)
	log.With("outcome", "succeeded").Warn("run ended strangely")
	log.Info("tick missed", "outcome", "missed")
	log.Info("roster changed")
	log.Debug("a detail")
	if got := strings.Count(out.String(), "\n"); got != 4 || !strings.Contains(out.String(), `"outcome":"failed","duration":"2s"`) {
		t.Errorf("%d lines are logged, want 4:\n%s", got, out.String())
	}
}

func TestLogFormats(t *testing.T) {
	for format, want := range map[string]string{
		"json":    `"message":"hello"`,
		"auto":    `"message":"hello"`, // not a terminal
		"console": "INF hello lag=1.5s",
	} {
		var out strings.Builder
		log := newLogger(&out, Log{Level: "info", Format: format})
		log.Debug("hidden")
		log.Info("hello", "lag", 1500*time.Millisecond)
		if !strings.Contains(out.String(), want) || strings.Contains(out.String(), "hidden") || strings.Contains(out.String(), "\x1b") {
			t.Errorf("%s: got %q, want %q in it", format, out.String(), want)
		}
	}
}
