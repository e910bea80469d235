//go:build unix

package scheduler_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ledger"
)

// deafen has a server refuse what is written for want of replicas, and returns what ends it.
func deafen(ctx context.Context, t *testing.T, server *redistest.Server) (hear func()) {
	t.Helper()
	direct := server.Client(t)
	set := func(replicas string) {
		t.Helper()
		if err := direct.ConfigSet(ctx, "min-replicas-to-write", replicas).Err(); err != nil {
			t.Fatal(err)
		}
	}
	set("9")
	return func() { set("0") }
}

// snapshot is what a master has of a job's partition.
func (a *apart) snapshot(ctx context.Context, t *testing.T, job string) (restore func()) {
	t.Helper()
	jobsKey := fmt.Sprintf("{%s:%d}:jobs", twoMasters, ledger.Partition(job, twoMastersParts))
	slot, err := a.cluster.Slot(ctx, jobsKey)
	if err != nil {
		t.Fatal(err)
	}
	at := func(do func(keys []string, dump func(key string) string, put func(key, dump string) error, drop func(key string) error) error) {
		master, err := a.cluster.Master(ctx, jobsKey)
		if err != nil {
			t.Fatal(err)
		}
		c := master.Client(t)
		keys, err := c.ClusterGetKeysInSlot(ctx, slot, 100).Result()
		if err != nil {
			t.Fatal(err)
		}
		if err := do(keys, func(key string) string { return c.Dump(ctx, key).Val() },
			func(key, dump string) error { return c.RestoreReplace(ctx, key, 0, dump).Err() },
			func(key string) error { return c.Del(ctx, key).Err() }); err != nil {
			t.Fatal(err)
		}
	}
	was := make(map[string]string)
	at(func(keys []string, dump func(string) string, _ func(string, string) error, _ func(string) error) error {
		for _, key := range keys {
			was[key] = dump(key)
		}
		return nil
	})
	return func() {
		at(func(keys []string, _ func(string) string, put func(string, string) error, drop func(string) error) error {
			for _, key := range keys {
				if err := drop(key); err != nil {
					return err
				}
			}
			for key, dump := range was {
				if err := put(key, dump); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// TestDeafMasterIsWaitedFor has a partition of a Cluster get a master that has lost a grant, and takes no writes at first, for longer than
// FailoverHold. A node starts meanwhile. The tick that was granted is not granted again, for those who run it can say so only then.
func TestDeafMasterIsWaitedFor(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := onApart(ctx, t, false)
	there, ran := a.name(ctx, t, "there", true), make(chan time.Time, 100)
	tick := time.Now().Add(7 * time.Second).Truncate(time.Second)
	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{
		Name: there, Schedule: fmt.Sprintf("%d * * * * *", tick.Second()), TTL: time.Minute, Overlap: jobs.OverlapQueue,
		Func: func(ctx context.Context, run *jobs.Run) error {
			ran <- run.Tick()
			<-ctx.Done()
			return nil
		},
	})
	runOnCluster(t, a.n1.client(t, a.cluster, a.away), reg, "n1", time.Second)
	runOnCluster(t, a.n2.client(t, a.cluster, a.away), reg, "n2", time.Second)
	until(ctx, t, tick.Add(-time.Second))
	forget := a.snapshot(ctx, t, there)
	next(ctx, t, "the tick", ran)
	a.n1.away.Cut() // until the new master refuses
	a.n2.away.Cut()
	a.n1.others.Cut()
	a.n2.others.Cut()
	home, err := a.cluster.Master(ctx, "{"+twoMasters+"}:control")
	if err != nil {
		t.Fatal(err)
	}
	_, _, master := jobAt(ctx, t, a.cluster, func(s *redistest.Server) bool { return s != home && s != a.away })
	if err := a.cluster.MoveSlot(ctx, fmt.Sprintf("{%s:%d}:jobs", twoMasters, ledger.Partition(there, twoMastersParts)), master); err != nil {
		t.Fatal(err)
	}
	forget()
	hear := deafen(ctx, t, master)
	for _, road := range []*redistest.Net{&a.n1.away, &a.n2.away, &a.n1.others, &a.n2.others} {
		road.Heal()
	}
	until(ctx, t, time.Now().Add(2*time.Second))
	runOnCluster(t, a.cluster.Client(t), reg, "n3", time.Second)
	until(ctx, t, time.Now().Add(3*time.Second))
	hear()
	until(ctx, t, time.Now().Add(6*time.Second))
	if len(ran) > 0 {
		t.Errorf("the tick at %s was run again", <-ran)
	}
}

// TestDeafMasterIsNoReasonToReap has a master of a Cluster take no writes until leases of nodes that live have lapsed. What succeeded there
// meanwhile is recorded as that when it takes them again, and not reaped and run once more.
func TestDeafMasterIsNoReasonToReap(t *testing.T) {
	t.Parallel()
	for _, lasts := range []time.Duration{5800 * time.Millisecond, 14 * time.Second} { // until the leases lapse, and for longer than another ttl
		t.Run(lasts.String(), func(t *testing.T) {
			t.Parallel()
			noReasonToReap(t, lasts)
		})
	}
}

// noReasonToReap has the master take no writes for some time.
func noReasonToReap(t *testing.T, lasts time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := onApart(ctx, t, false)
	tick := time.Now().Add(7 * time.Second).Truncate(time.Second)
	var calls atomic.Int64
	reg := jobs.NewRegistry()
	for i := range 5 {
		reg.MustAdd(jobs.Job{
			Name: a.name(ctx, t, fmt.Sprint("there-", i), true), Schedule: fmt.Sprintf("%d * * * * *", tick.Second()), TTL: 6 * time.Second,
			OnCrash: jobs.OnCrashRerun, Func: func(ctx context.Context, _ *jobs.Run) error {
				calls.Add(1)
				select {
				case <-ctx.Done():
				case <-time.After(3 * time.Second):
				}
				return nil
			},
		})
	}
	runOnCluster(t, a.n1.client(t, a.cluster, a.away), reg, "n1", time.Second)
	runOnCluster(t, a.n2.client(t, a.cluster, a.away), reg, "n2", time.Second)
	began := until(ctx, t, tick.Add(2500*time.Millisecond))
	hear := deafen(ctx, t, a.away)
	until(ctx, t, began.Add(lasts))
	hear()
	until(ctx, t, time.Now().Add(8*time.Second))
	if n := calls.Load(); n != 5 {
		t.Errorf("functions were called %d times for five ticks", n)
	}
}
