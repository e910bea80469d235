package main

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

var aTick = time.UnixMilli(1_800_000_000_000)

func newTable(t *testing.T, path string) *table {
	t.Helper()
	table, err := openTable(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := table.close(); err != nil {
			t.Error(err)
		}
	})
	return table
}

func filled(t *testing.T, rows int) *table {
	t.Helper()
	table := newTable(t, filepath.Join(t.TempDir(), "rows.db"))
	if err := table.fill(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	return table
}

// number reads one whole number.
func (t *table) number(tb testing.TB, query string, args ...any) (n int) {
	tb.Helper()
	if err := t.db.QueryRowContext(context.Background(), query, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return n
}

func shardRun(shard int, token int64) *jobs.Run {
	return jobs.NewRun(jobs.RunInfo{Job: "move-rows", Tick: aTick, Shard: shard, Shards: shards, Token: token, Node: "a"})
}

// The first shard of a tick fixes the range for all shards; a later row belongs to the next tick.
func TestSpanIsNotedOnce(t *testing.T) {
	table := filled(t, 1000)
	want := func(tick time.Time, from, to int64) {
		t.Helper()
		if gotFrom, gotTo, err := table.span(t.Context(), tick); err != nil || gotFrom != from || gotTo != to {
			t.Errorf("[%d, %d) and %v, want [%d, %d)", gotFrom, gotTo, err, from, to)
		}
	}
	want(aTick, 1, 1001)
	if _, err := table.batch(t.Context(), shardRun(0, 1), 1, 60); err != nil {
		t.Fatal(err)
	}
	if err := table.fill(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	want(aTick, 1, 1001)
	want(aTick.Add(time.Minute), 60, 1006)
}

// A run goes on after its shard was granted to another run.
func TestStaleRunIsRefused(t *testing.T) {
	table := filled(t, 1000)
	ctx := t.Context()
	slow, next := shardRun(2, 500), shardRun(2, 700)
	for i, step := range []struct {
		run  *jobs.Run
		rows int
		err  error
	}{
		{slow, 100, nil},
		{slow, 100, nil}, // its own token
		{next, 100, nil},
		{slow, 0, errStale},
		{shardRun(3, 600), 100, nil}, // each shard has a fence of its own
		{next, 100, nil},
	} {
		before := table.number(t, `SELECT count(*) FROM target`)
		n, err := table.batch(ctx, step.run, 1, 1001)
		if n != step.rows || !errors.Is(err, step.err) || (err != nil && !jobs.IsPermanent(err)) {
			t.Errorf("step %d: %d rows, %v; want %d, %v", i, n, err, step.rows, step.err)
		}
		if moved := table.number(t, `SELECT count(*) FROM target`) - before; moved != step.rows {
			t.Errorf("step %d: %d rows came to target, want %d", i, moved, step.rows)
		}
	}
	if all := table.number(t, `SELECT (SELECT count(*) FROM source) + (SELECT count(*) FROM target)`); all != 1000 {
		t.Errorf("%d rows in both tables", all)
	}
}

// A run whose lease is lost stops between two batches, with the cause.
func TestEndedContextStops(t *testing.T) {
	table := filled(t, 10_000)
	lost := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error)
	go func() { done <- move(ctx, table, shardRun(0, 1), time.Hour) }()
	wait(t, "a first batch", func() bool { return table.number(t, `SELECT count(*) FROM target`) > 0 })
	cancel(lost)
	if err := <-done; !errors.Is(err, lost) {
		t.Errorf("%v", err)
	}
	if n := table.number(t, `SELECT count(*) FROM target`); n != batchRows {
		t.Errorf("%d rows moved, want one batch", n)
	}
}

// wait polls for an event.
func wait(tb testing.TB, what string, happened func() bool) {
	tb.Helper()
	const within = 3 * time.Minute // only a standstill takes as long
	deadline, tick := time.After(within), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !happened() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("after %s still no %s", within, what)
		}
	}
}
