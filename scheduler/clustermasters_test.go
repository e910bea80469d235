//go:build unix

package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

const (
	twoMasters      = "two" // a namespace
	twoMastersParts = 16
)

// jobAt names a job whose partition lives at such a master, and a key of it.
func jobAt(ctx context.Context, t *testing.T, c *redistest.Cluster, at func(*redistest.Server) bool) (job, key string, master *redistest.Server) {
	t.Helper()
	for i := 0; master == nil || !at(master); i++ {
		job = fmt.Sprint("job-", i)
		key = fmt.Sprintf("{%s:%d}:jobs", twoMasters, ledger.Partition(job, twoMastersParts))
		var err error
		if master, err = c.Master(ctx, key); err != nil {
			t.Fatal(err)
		}
	}
	return job, key, master
}

// next is what comes next, or the test ends.
func next[T any](ctx context.Context, t *testing.T, what string, from <-chan T) (came T) {
	t.Helper()
	select {
	case came = <-from:
	case <-ctx.Done():
		t.Fatalf("%s: %v", what, ctx.Err())
	}
	return came
}

// runOnCluster runs a node in the namespace of these tests; hold is its FailoverHold.
func runOnCluster(t *testing.T, client redis.UniversalClient, reg *jobs.Registry, name string, hold time.Duration) {
	t.Helper()
	runNode(t, client, reg, scheduler.Config{Namespace: twoMasters, Partitions: twoMastersParts, Name: name, MaxRunning: 30, FailoverHold: hold})
}

// runNode runs a node that says nothing until the test ends.
func runNode(t *testing.T, client redis.UniversalClient, reg *jobs.Registry, cfg scheduler.Config) *scheduler.Node {
	t.Helper()
	cfg.DrainTimeout, cfg.Logger = time.Second, slog.New(slog.DiscardHandler)
	node, err := scheduler.New(client, reg, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- node.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
	})
	return node
}

// TestRunIsToldToAnotherMaster has one master of a Cluster end that has granted a tick and passed it on to nobody, not the
// master whose clock the nodes read. The tick is running meanwhile, and is not to run again. What comes after it does not wait
// for FailoverHold, because both nodes say that they have told.
func TestRunIsToldToAnotherMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // less than FailoverHold
	defer cancel()
	home, err := c.Master(ctx, "{"+twoMasters+"}:control")
	if err != nil {
		t.Fatal(err)
	}
	job, key, master := jobAt(ctx, t, c, func(s *redistest.Server) bool { return s != home })

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
		runOnCluster(t, c.Client(t), reg, name, time.Minute)
	}
	next(ctx, t, "the first run", short)
	if err := c.Part(ctx, master); err != nil {
		t.Fatal(err)
	}
	close(held)
	run := next(ctx, t, "a run that only its master knows", long)
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Promoted(ctx, key, master); err != nil {
		t.Fatal(err)
	}
	inspector, err := scheduler.NewInspector(c.Client(t), twoMasters)
	if err != nil {
		t.Fatal(err)
	}
	for known := false; !known; {
		call, cancel := context.WithTimeout(ctx, time.Second)
		leases, err := inspector.Leases(call, job)
		cancel()
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
	for next(ctx, t, "a run after it", long).Tick().Sub(run.Tick()) < 3*time.Second {
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

// TestInspectorFindsAnotherMaster has masters of a Cluster end, that of the control record first. An Inspector with a client of its own is
// to find those who take their place, soon after they do, by the calls that fail.
func TestInspectorFindsAnotherMaster(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	control := "{" + twoMasters + "}:control"
	home, err := c.Master(ctx, control)
	if err != nil {
		t.Fatal(err)
	}
	job, key, master := jobAt(ctx, t, c, func(s *redistest.Server) bool { return s != home })
	if _, err := ledger.Open(ctx, c.Client(t), ledger.Config{Namespace: twoMasters, Partitions: twoMastersParts}); err != nil {
		t.Fatal(err)
	}
	type call func(ctx context.Context, i *scheduler.Inspector) error
	calls := map[string]call{
		"Drains": func(ctx context.Context, i *scheduler.Inspector) error {
			_, err := i.Drains(ctx)
			return err
		},
		"Jobs": func(ctx context.Context, i *scheduler.Inspector) error {
			_, err := i.Jobs(ctx)
			return err
		},
		"Trigger": func(ctx context.Context, i *scheduler.Inspector) error {
			if _, err := i.Trigger(ctx, job, scheduler.TriggerOptions{}); !errors.Is(err, scheduler.ErrUnknownJob) {
				return err
			}
			return nil
		},
	}
	for _, end := range []struct {
		key    string
		master *redistest.Server
	}{{control, home}, {key, master}} {
		inspectors := make(map[string]*scheduler.Inspector)
		for name, call := range calls {
			if inspectors[name], err = scheduler.NewInspector(c.Client(t), twoMasters); err != nil {
				t.Fatal(err)
			}
			if err := call(ctx, inspectors[name]); err != nil {
				t.Fatal(err)
			}
		}
		if err := end.master.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Promoted(ctx, end.key, end.master); err != nil {
			t.Fatal(err)
		}
		for name, call := range calls {
			soon, cancel := context.WithTimeout(ctx, 5*time.Second)
			for err := call(soon, inspectors[name]); err != nil; err = call(soon, inspectors[name]) {
				select {
				case <-time.After(50 * time.Millisecond):
				case <-soon.Done():
					t.Fatalf("%s, with another master in place of %s: %v", name, end.master.Addr(), err)
				}
			}
			cancel()
		}
	}
}

// TestMasterThatIsAwayHoldsNobodyUp has two partitions move to other masters. When the node tells one of these of a run that goes on, it
// loses sight of that master. What the other is to be told it is told, and goes on.
func TestMasterThatIsAwayHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	home, err := c.Master(ctx, "{"+twoMasters+"}:control")
	if err != nil {
		t.Fatal(err)
	}
	_, _, away := jobAt(ctx, t, c, func(s *redistest.Server) bool { return s != home })
	other, key, third := jobAt(ctx, t, c, func(s *redistest.Server) bool { return s != home && s != away })
	stuck, stuckKey := other, key
	for skip := 1; stuckKey == key; skip++ { // of another partition there
		left := skip
		stuck, stuckKey, _ = jobAt(ctx, t, c, func(s *redistest.Server) bool {
			if s == third {
				left--
			}
			return s == third && left < 0
		})
	}

	var road roads
	began, ticked := make(chan struct{}, 100), make(chan time.Time, 1000)
	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{Name: stuck, Schedule: "@every 1s", Func: func(ctx context.Context, _ *jobs.Run) error {
		began <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	}})
	reg.MustAdd(jobs.Job{Name: other, Schedule: "@every 1s", Func: func(_ context.Context, run *jobs.Run) error {
		ticked <- run.Tick()
		return nil
	}})
	client := road.client(t, c, away)
	cut := make(chan struct{})
	client.AddHook(around{script: "reassert", before: sync.OnceFunc(func() {
		road.away.Cut()
		close(cut)
	})})
	runOnCluster(t, client, reg, "n1", time.Second)
	next(ctx, t, "the run that goes on", began)
	for key, to := range map[string]*redistest.Server{stuckKey: away, key: home} {
		if err := c.MoveSlot(ctx, key, to); err != nil {
			t.Fatal(err)
		}
	}
	moved := time.Now()
	t.Logf("%s is at %s now and %s at %s; they were at %s", stuck, away.Addr(), other, home.Addr(), third.Addr())
	next(ctx, t, "the node tells of the run", cut)
	for next(ctx, t, "a tick of the other partition that moved, five seconds later", ticked).Before(moved.Add(5 * time.Second)) {
		continue
	}
}
