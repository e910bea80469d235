package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/cmd/internal/cmdtest"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/move"
	"github.com/escapement/escapement/scheduler/ops"
)

var (
	backupJobs = flag.Int("backup.jobs", 100, "how many jobs TestBackupUnderLoad has")
	backups    = flag.Int("backup.count", 3, "how many backups it takes and restores")
)

// loadJobs run every second: short jobs, followers, sharded jobs, and jobs whose runs outlive their
// period.
func loadJobs(n int) *jobs.Registry {
	reg := jobs.NewRegistry()
	for i := range n {
		j := jobs.Job{Name: fmt.Sprintf("job-%04d", i), Schedule: "@every 1s", Func: func(context.Context, *jobs.Run) error { return nil }}
		switch i % 10 {
		case 1:
			j.Schedule, j.After = "", []string{fmt.Sprintf("job-%04d", i-1)}
		case 2:
			j.Shards = 3
		case 3:
			j.Overlap = jobs.OverlapQueue
			j.Func = func(ctx context.Context, _ *jobs.Run) error { return resting(ctx, 1500*time.Millisecond) }
		case 4:
			j.Func = func(context.Context, *jobs.Run) error { return fmt.Errorf("no luck") }
		case 5:
			j.Overlap = jobs.OverlapReplace
			j.Func = func(ctx context.Context, _ *jobs.Run) error { return resting(ctx, 3*time.Second) }
		}
		reg.MustAdd(j)
	}
	return reg
}

func resting(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// TestBackupUnderLoad: backups are taken while nodes run all jobs every second. Each is restored
// under another name, where nodes go on with it. The audit finds nothing wrong in any of them.
func TestBackupUnderLoad(t *testing.T) {
	client := redistest.Start(t).Client(t)
	run := func(namespace string, nodes int) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range nodes {
			node, err := scheduler.New(client, loadJobs(*backupJobs), scheduler.Config{Namespace: namespace, Name: fmt.Sprintf("n%d", i),
				Revision: "1", MaxRunning: 512, DrainTimeout: time.Second, Logger: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				if err := node.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		return func() { cancel(); all.Wait() }
	}
	verify := func(namespace string) {
		t.Helper()
		admin, err := ops.New(client, namespace)
		if err != nil {
			t.Fatal(err)
		}
		x, err := admin.Verify(t.Context(), ops.VerifyFilter{})
		if err != nil || len(x.Violations)+len(x.UnknownFormat)+len(x.Unverified) > 0 || x.Checked.Jobs != int64(*backupJobs) {
			t.Errorf("%s: %d jobs, %d rows, %+v, %v, %v: %v", namespace, x.Checked.Jobs, x.Checked.Rows, x.Violations, x.UnknownFormat, x.Unverified, err)
		}
		t.Logf("%s: %d jobs, %d rows and %d ticks are in order", namespace, x.Checked.Jobs, x.Checked.Rows, x.Checked.Ticks)
	}
	stop := run("lives", 3)
	files := make([]bytes.Buffer, *backups)
	for i := range files {
		ran(t, client, "lives", 3*(i+1))
		began := time.Now()
		totals, left, err := move.Backup(t.Context(), client, "lives", &files[i])
		if err != nil || len(left) > 0 {
			t.Fatal(left, err)
		}
		t.Logf("%+v in %s", totals, time.Since(began))
		if totals.Running == 0 {
			t.Error("nothing ran")
		}
	}
	followed(t, client, "lives")
	stop()
	verify("lives")
	for i := range files {
		namespace := fmt.Sprintf("restored-%d", i)
		began := time.Now()
		got, err := move.Restore(t.Context(), client, bytes.NewReader(files[i].Bytes()), move.RestoreOptions{Namespace: namespace})
		if err != nil || got.Jobs != int64(*backupJobs) || len(got.Exists) > 0 {
			t.Fatalf("%+v, %v", got, err)
		}
		t.Logf("restored in %s", time.Since(began))
		verify(namespace)
		before := runs(t, client, namespace)
		stop := run(namespace, 2)
		ran(t, client, namespace, before+8) // leases of 5 s lapse meanwhile
		followed(t, client, namespace)
		stop()
		verify(namespace)
	}
}

// runs counts the runs of the first job, which runs every second.
func runs(t *testing.T, client *redis.Client, namespace string) int {
	t.Helper()
	admin, err := ops.New(client, namespace)
	if err != nil {
		t.Fatal(err)
	}
	list, err := admin.ListRuns(t.Context(), ops.RunFilter{Job: "job-0000", Outcome: jobs.OutcomeSucceeded.String()})
	if err != nil && !errors.Is(err, ops.ErrUnknownNamespace) && !errors.Is(err, ops.ErrUnknownJob) {
		t.Fatal(err)
	}
	return len(list.Items)
}

// ran waits until the first job has so many runs.
func ran(t *testing.T, client *redis.Client, namespace string, n int) {
	t.Helper()
	cmdtest.Eventually(t, fmt.Sprintf("%s has %d runs of a job", namespace, n), func() bool { return runs(t, client, namespace) >= n })
}

// followed waits until each follower has a record of every tick of its upstream job that succeeded,
// between the first and the last tick of which it has one.
func followed(t *testing.T, client *redis.Client, namespace string) {
	t.Helper()
	admin, err := ops.New(client, namespace)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < *backupJobs; i += 10 {
		upstream, follower := fmt.Sprintf("job-%04d", i), fmt.Sprintf("job-%04d", i+1)
		cmdtest.Eventually(t, fmt.Sprintf("%s: %s has a record of each tick of %s", namespace, follower, upstream), func() bool {
			return unanswered(t, admin, upstream, follower) == 0
		})
	}
}

// unanswered counts the ticks of an upstream job of which its follower has no record.
func unanswered(t *testing.T, admin *ops.Client, upstream, follower string) (n int) {
	t.Helper()
	list := func(job string) []ops.RunView {
		got, err := admin.ListRuns(t.Context(), ops.RunFilter{Job: job})
		if err != nil {
			t.Fatal(err)
		}
		return got.Items
	}
	ticks := make(map[int64]bool)
	var first, last int64
	for _, r := range list(follower) {
		at := r.Tick.UnixMilli()
		until := at
		if !r.Until.IsZero() {
			until = r.Until.UnixMilli()
		}
		for tick := at; tick <= until; tick += 1000 {
			ticks[tick] = true
			last = max(last, tick)
			if first == 0 || tick < first {
				first = tick
			}
		}
	}
	for _, r := range list(upstream) {
		if at := r.Tick.UnixMilli(); r.Outcome == jobs.OutcomeSucceeded && at > first && at < last && !ticks[at] {
			n++
		}
	}
	return n
}
