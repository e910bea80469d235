package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// What the scheduler logs at a run's start and end.
const (
	runStarted = "run started"
	runEnded   = "run ended"
)

// tickLines prints one line on out for each run that starts. Of the starts and the
// good ends nothing else is logged, every other record goes on to next.
type tickLines struct {
	next  slog.Handler
	out   io.Writer // written in one call a line
	attrs []slog.Attr
}

// Enabled lets the starts through whatever the level of the log.
func (t *tickLines) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || t.next.Enabled(ctx, level)
}

// Handle prints a start and hands on the rest.
func (t *tickLines) Handle(ctx context.Context, r slog.Record) error {
	switch {
	case r.Message == runStarted:
		_, err := fmt.Fprintln(t.out, t.line(r))
		return err
	case r.Message == runEnded && r.Level <= slog.LevelInfo, !t.next.Enabled(ctx, r.Level):
		return nil
	default:
		return t.next.Handle(ctx, r)
	}
}

// line is "report  tick 2026-01-02T15:04:05.000Z  node dev-2  token 17..  lag 0.8ms".
func (t *tickLines) line(r slog.Record) string {
	said := map[string]slog.Value{}
	for _, at := range t.attrs {
		said[at.Key] = at.Value
	}
	r.Attrs(func(at slog.Attr) bool {
		said[at.Key] = at.Value.Resolve()
		return true
	})
	return fmt.Sprintf("%-12s  tick %s  node %s  token %s  lag %s",
		said["job"], plain(said["tick"]), said["node"], said["token"], plain(said["lag"]))
}

// plain writes times as everywhere in the outputs and durations in milliseconds.
func plain(v slog.Value) string {
	switch x := v.Any().(type) {
	case time.Time:
		return x.UTC().Format(logTime)
	case time.Duration:
		return fmt.Sprintf("%.1fms", float64(x)/float64(time.Millisecond))
	default:
		return v.String()
	}
}

// WithAttrs keeps the attributes, for they may hold what the line shows.
func (t *tickLines) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &tickLines{t.next.WithAttrs(attrs), t.out, append(t.attrs[:len(t.attrs):len(t.attrs)], attrs...)}
}

// WithGroup only matters to next: the scheduler's starts are in no group.
func (t *tickLines) WithGroup(name string) slog.Handler {
	return &tickLines{t.next.WithGroup(name), t.out, t.attrs}
}
