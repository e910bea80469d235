package main

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/sharding"
)

const (
	shards    = 16
	batchRows = 100
)

// moveRows is the job. The nodes share the shards of a tick. Other nodes run the shards of a dead node
// again; they begin where it ended, because a moved batch is no longer in source.
func moveRows(t *table, schedule string, pause time.Duration) jobs.Job {
	return jobs.Job{
		Name:     "move-rows",
		Schedule: schedule,
		Shards:   shards,
		OnCrash:  jobs.OnCrashRerun,
		TTL:      3 * time.Second, // short, so that a killed node's shards soon go on; the default is 15 s
		Func: func(ctx context.Context, run *jobs.Run) error {
			return move(ctx, t, run, pause)
		},
	}
}

// move moves this shard's part of the table, batch by batch.
func move(ctx context.Context, t *table, run *jobs.Run, pause time.Duration) error {
	from, to, err := t.span(ctx, run.Tick())
	if err != nil {
		return err
	}
	lo, hi := sharding.Split(from, to, run.Shard(), run.Shards())
	for moved := 0; ; {
		n, err := t.batch(ctx, run, lo, hi)
		moved += n
		fmt.Fprintf(run.Output(), "moved %d rows of [%d, %d)\n", moved, lo, hi)
		if err != nil || n < batchRows {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
