//go:build unix

package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// TestRunIsToldToAnotherMaster has one master of a Cluster end that has granted a tick and passed it on to nobody, not the
// master whose clock the nodes read. The tick is running meanwhile, and is not to run again.
func TestRunIsToldToAnotherMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const ns, parts = "two", 16
	home, err := c.Master(ctx, "{"+ns+"}:control")
	if err != nil {
		t.Fatal(err)
	}
	// A job of another master.
	var job, key string
	var master *redistest.Server
	for i := 0; master == nil || master == home; i++ {
		job = fmt.Sprint("job-", i)
		key = fmt.Sprintf("{%s:%d}:jobs", ns, ledger.Partition(job, parts))
		if master, err = c.Master(ctx, key); err != nil {
			t.Fatal(err)
		}
	}

	var mu sync.Mutex
	starts := make(map[time.Time]int)                     // of each tick
	held, end := make(chan struct{}), make(chan struct{}) // from the first on runs last until the second
	short, long := make(chan *jobs.Run, 100), make(chan *jobs.Run, 100)
	work := func(ctx context.Context, run *jobs.Run) error {
		mu.Lock()
		starts[run.Tick()]++
		mu.Unlock()
		select {
		case <-held:
		default:
			short <- run
			return nil
		}
		long <- run
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-end:
			return nil
		}
	}
	for _, name := range []string{"n1", "n2"} {
		reg := jobs.NewRegistry()
		reg.MustAdd(jobs.Job{Name: job, Schedule: "@every 1s", Func: work})
		node, err := scheduler.New(c.Client(t), reg, scheduler.Config{Namespace: ns, Partitions: parts, Name: name, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		nodeCtx, stop := context.WithCancel(context.Background())
		stopped := make(chan error, 1)
		go func() { stopped <- node.Run(nodeCtx) }()
		t.Cleanup(func() {
			stop()
			if err := <-stopped; err != nil {
				t.Error(err)
			}
		})
	}
	next := func(what string, runs chan *jobs.Run) *jobs.Run {
		select {
		case run := <-runs:
			return run
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, ctx.Err())
			return nil
		}
	}

	next("the first run", short)
	if err := c.Part(ctx, master); err != nil {
		t.Fatal(err)
	}
	close(held)
	run := next("a run that only its master knows", long)
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Promoted(ctx, key, master); err != nil {
		t.Fatal(err)
	}
	client := c.Client(t)
	inspector, err := scheduler.NewInspector(client, ns)
	if err != nil {
		t.Fatal(err)
	}
	for known := false; !known; {
		call, cancel := context.WithTimeout(ctx, time.Second)
		leases, err := inspector.Leases(call, job)
		cancel()
		redisconn.LookAgain(ctx, client, err)
		if err != nil && ctx.Err() != nil {
			t.Fatalf("the new master has not been told of the run: %v", err)
		}
		known = slices.ContainsFunc(leases, func(l scheduler.LeaseView) bool { return l.Run == run.ID() })
		select {
		case again := <-long:
			t.Fatalf("tick %s is run again while it runs, as run %s", again.Tick(), again.ID())
		case <-time.After(20 * time.Millisecond):
		}
	}
	close(end)
	for next("a run after it", long).Tick().Sub(run.Tick()) < 3*time.Second {
		continue
	}
	mu.Lock()
	defer mu.Unlock()
	for tick, n := range starts {
		if n != 1 {
			t.Errorf("tick %s was run %d times", tick, n)
		}
	}
	if view, err := inspector.Run(ctx, run.ID()); err != nil || view.Outcome != "succeeded" {
		t.Errorf("the run that was told: %+v, %v", view, err)
	}
}
