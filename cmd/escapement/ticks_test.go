package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestTickLines logs as the scheduler does and looks at both streams.
func TestTickLines(t *testing.T) {
	var ticks, rest strings.Builder
	at := time.Date(2026, 1, 2, 16, 4, 5, 0, time.FixedZone("", 3600))
	log := slog.New(&tickLines{next: newLogger(&rest, Log{Level: "warn", Format: "json"}).Handler(), out: &ticks}).With("node", "dev-2")
	log.Info(runStarted, "job", "report", "tick", at, "token", int64(1795267334003305), "lag", 840*time.Microsecond)
	log.Info(runEnded, "job", "report", "outcome", "succeeded")
	log.Warn(runEnded, "job", "report", "outcome", "failed", "duration", 2*time.Second)
	log.Info("roster changed")
	log.Debug("a detail")

	want := "report        tick 2026-01-02T15:04:05.000Z  node dev-2  token 1795267334003305  lag 0.8ms\n"
	if ticks.String() != want {
		t.Errorf("got  %swant %s", ticks.String(), want)
	}
	if got := strings.Count(rest.String(), "\n"); got != 1 || !strings.Contains(rest.String(), `"outcome":"failed","duration":"2s"`) {
		t.Errorf("the log has %d lines, want only the failed run:\n%s", got, rest.String())
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
