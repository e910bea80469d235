//go:build unix

package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// move has another server become the master of a job's partition, not the one that is away. It has all that the one before it had.
func (a *apart) move(ctx context.Context, t *testing.T, job string) {
	t.Helper()
	key := fmt.Sprintf("{%s:%d}:jobs", twoMasters, ledger.Partition(job, twoMastersParts))
	from, err := a.cluster.Master(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	_, _, to := jobAt(ctx, t, a.cluster, func(s *redistest.Server) bool { return s != from && s != a.away })
	if err := a.cluster.MoveSlot(ctx, key, to); err != nil {
		t.Fatal(err)
	}
}

// TestReplacedMasterHoldsItsOwn has a partition of a Cluster get another master, while a node that may have to tell it of runs says
// nothing. The partition's job waits for that node for as long as FailoverHold; those of other partitions do not.
func TestReplacedMasterHoldsItsOwn(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const hold = 6 * time.Second
	a := onApart(ctx, t, false)
	reg := jobs.NewRegistry()
	for i := range 10 {
		a.elsewhere = append(a.elsewhere, a.name(ctx, t, fmt.Sprint("elsewhere-", i), false))
		reg.MustAdd(jobs.Job{Name: a.elsewhere[i], Schedule: "@every 1s", Func: a.seen.note})
	}
	there, ran := a.name(ctx, t, "there", true), make(chan time.Time, 100)
	reg.MustAdd(jobs.Job{Name: there, Schedule: "@every 1s", Func: func(_ context.Context, run *jobs.Run) error {
		ran <- run.Tick()
		return nil
	}})
	runOnCluster(t, a.n1.client(t, a.cluster, a.away), reg, "n1", hold)
	runOnCluster(t, a.n2.client(t, a.cluster, a.away), reg, "n2", hold)
	cut := until(ctx, t, time.Now().Add(4*time.Second).Truncate(time.Second).Add(stint))
	a.n2.away.Cut()
	a.n2.others.Cut()
	a.move(ctx, t, there)
	moved := time.Now()
	for len(ran) > 0 {
		<-ran
	}
	next(ctx, t, "a run of the partition that moved", ran)
	held := time.Since(moved)
	over := time.Now()
	if held < hold-2*time.Second {
		t.Errorf("a run began %s after its partition had another master; the node that says nothing is to be waited for %s", held, hold)
	}
	t.Log("a partition was held for", held, "the latest elsewhere:", a.seen.check(t, a.elsewhere, cut, over.Add(-time.Second), 3*time.Second))
}

// TestReplacedMasterIsToldAtOnce has a partition get another master while one that stays is slow, which has many runs of the node. It
// has not lost them, so nobody waits until it was told of them.
func TestReplacedMasterIsToldAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := onApart(ctx, t, false)
	reg, ran := jobs.NewRegistry(), make(chan time.Time, 1000)
	there := a.name(ctx, t, "moves", false)
	reg.MustAdd(jobs.Job{Name: there, Schedule: "@every 1s", Func: func(_ context.Context, run *jobs.Run) error {
		ran <- run.Tick()
		return nil
	}})
	for i := range 100 {
		reg.MustAdd(jobs.Job{Name: a.name(ctx, t, fmt.Sprint("slow-", i), true), Schedule: "@every 1s", Func: func(context.Context, *jobs.Run) error { return nil }})
	}
	client := a.n1.client(t, a.cluster, a.away)
	client.Options().PoolSize = 64 // who waits for a connection too long was not answered
	runNode(t, client, reg, scheduler.Config{Namespace: twoMasters, Partitions: twoMastersParts, Name: "n1", FailoverHold: 20 * time.Second})
	next(ctx, t, "a run of the partition that is going to move", ran)
	until(ctx, t, time.Now().Add(5*time.Second)) // some five hundred ends
	a.n1.away.Delay(300 * time.Millisecond)
	a.move(ctx, t, there)
	moved := time.Now()
	for next(ctx, t, "a tick of the partition that moved", ran).Before(moved) {
		continue
	}
	if held := time.Since(moved); held > 4*time.Second {
		t.Errorf("its first tick was run %s after it had another master", held)
	} else {
		t.Log("its first tick was run after", held)
	}
}
