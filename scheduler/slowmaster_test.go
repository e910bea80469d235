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
	"github.com/escapement/escapement/scheduler"
)

// TestSlowMaster has a master of a Cluster answer late, but soon enough to count as there. Its claims and ends, of which some are
// always under way, keep those of no other master waiting.
func TestSlowMaster(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a := &apart{cluster: redistest.StartCluster(t), seen: lags{ticks: make(map[string]map[int64]time.Duration)}}
	of, err := a.cluster.Master(ctx, "{"+twoMasters+"}:control")
	if err != nil {
		t.Fatal(err)
	}
	_, _, a.away = jobAt(ctx, t, a.cluster, func(s *redistest.Server) bool { return s != of })
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
