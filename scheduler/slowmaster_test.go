//go:build unix

package scheduler_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler"
)

// TestSlowMaster has a master of a Cluster answer late, but soon enough to count as there. Its claims and ends, of which some are
// always under way, keep those of no other master waiting.
func TestSlowMaster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := onApart(ctx, t, false)
	all := jobs.NewRegistry()
	for i := range 10 {
		a.elsewhere = append(a.elsewhere, a.name(ctx, t, fmt.Sprint("elsewhere-", i), false))
		all.MustAdd(jobs.Job{Name: a.elsewhere[i], Schedule: "@every 1s", Func: a.seen.note})
	}
	var there atomic.Int64
	for i := range 16 { // each at an instant of its own
		all.MustAdd(jobs.Job{
			Name: a.name(ctx, t, fmt.Sprint("there-", i), true), Schedule: fmt.Sprintf("@every %dms", 1000+13*i),
			Func: func(context.Context, *jobs.Run) error {
				there.Add(1)
				return nil
			},
		})
	}
	client := a.n1.client(t, a.cluster, a.away)
	client.Options().PoolSize = 64 // who waits for a connection too long was not answered
	runNode(t, client, all, scheduler.Config{Namespace: twoMasters, Partitions: twoMastersParts, Name: "n1"})
	slow := until(ctx, t, time.Now().Add(5*time.Second))
	a.n1.away.Delay(350 * time.Millisecond)
	before := there.Load()
	over := until(ctx, t, slow.Add(10*time.Second))
	a.n1.away.Heal()
	if ran := there.Load() - before; ran < 70 {
		t.Errorf("%d runs there in ten seconds, want half of those that are due at least: it counts as silent", ran)
	}
	t.Log("a master is slow, the latest elsewhere:", a.seen.check(t, a.elsewhere, slow, over, time.Second))
}

// TestMasterThatTakesNoWrites has a master of a Cluster answer what is read, and refuse what is written for want of replicas, or of
// memory. A node that starts meanwhile runs what lives elsewhere. What is read from it is not to hide that its jobs wait, or their
// claims would take all slots by and by.
func TestMasterThatTakesNoWrites(t *testing.T) {
	t.Parallel()
	for setting, value := range map[string]string{"min-replicas-to-write": "9", "maxmemory": "1"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			takesNoWrites(t, setting, value)
		})
	}
}

// takesNoWrites makes the master refuse by a setting, which is 0 else.
func takesNoWrites(t *testing.T, setting, value string) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := startApart(ctx, t, false)
	direct := a.away.Client(t)
	refuse := func(value string) {
		t.Helper()
		if err := direct.ConfigSet(ctx, setting, value).Err(); err != nil {
			t.Fatal(err)
		}
	}
	cut := until(ctx, t, time.Now().Add(4*time.Second).Truncate(time.Second).Add(stint/2))
	refuse(value)
	reg, started := jobs.NewRegistry(), make(chan struct{}, 1000)
	for _, there := range []bool{true, false} {
		reg.MustAdd(jobs.Job{Name: a.name(ctx, t, fmt.Sprint("new-", there), there), Schedule: "@every 1s", Func: func(context.Context, *jobs.Run) error {
			started <- struct{}{}
			return nil
		}})
	}
	runOnCluster(t, a.cluster.Client(t), reg, "n3", time.Second)
	next(ctx, t, "a run elsewhere at a node that starts meanwhile", started)
	over := until(ctx, t, cut.Add(7*time.Second))
	a.kept(t, "n1", "n2")
	close(a.over)
	refuse("0")
	until(ctx, t, over.Add(5*time.Second))

	t.Log("a master refuses, the latest elsewhere:", a.seen.check(t, a.elsewhere, cut, over.Add(-time.Second), time.Second))
	t.Log("it does not any more, the latest there:", a.seen.check(t, a.there, over.Add(2*time.Second), over.Add(4*time.Second), time.Second))
}
