package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// tickLines prints one line on out for each run that starts, in one write: several
// nodes share it.
func tickLines(out io.Writer) *scheduler.Hooks {
	return &scheduler.Hooks{Started: func(e scheduler.RunEvent) { fmt.Fprintln(out, tickLine(e)) }}
}

// tickLine is "report  tick 2026-01-02T15:04:05.000Z  node dev-2  token 17..  lag 0.8ms", and for one of several
// shards "  shard 3 of 16" behind the tick.
func tickLine(e scheduler.RunEvent) string {
	shard := ""
	if e.Shards > 1 {
		shard = fmt.Sprintf("  shard %d of %d", e.Shard, e.Shards)
	}
	return fmt.Sprintf("%-12s  tick %s%s  node %s  token %d  lag %.1fms",
		e.Job, e.Tick.UTC().Format(logTime), shard, e.Node, e.Token, float64(e.Lag)/float64(time.Millisecond))
}

// quietRuns keeps out of the log what the tick lines show already: of the records of
// level info those with a lag, which tell of a start, and those of a good end.
type quietRuns struct {
	slog.Handler
	quiet bool // an attribute given before says so
}

// Handle hands on the rest.
func (q quietRuns) Handle(ctx context.Context, r slog.Record) error {
	quiet := q.quiet
	r.Attrs(func(a slog.Attr) bool {
		quiet = quiet || saidAlready(a)
		return !quiet
	})
	if quiet && r.Level == slog.LevelInfo {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// WithAttrs looks at the attributes too.
func (q quietRuns) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		q.quiet = q.quiet || saidAlready(a)
	}
	q.Handler = q.Handler.WithAttrs(attrs)
	return q
}

// WithGroup keeps the filter: the scheduler's records are in no group.
func (q quietRuns) WithGroup(name string) slog.Handler {
	q.Handler = q.Handler.WithGroup(name)
	return q
}

func saidAlready(a slog.Attr) bool {
	return a.Key == "lag" || a.Key == "outcome" && a.Value.String() == jobs.OutcomeSucceeded.String()
}
