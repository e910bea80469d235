package scheduler_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// TestLeases follows a run's lease: none while it is pending, then less and less, and none when it is settled.
func TestLeases(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		i, ctx := c.inspector(), t.Context()
		id := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{}))
		if got := must[[]scheduler.LeaseView](t)(i.Leases(ctx, "")); got == nil || len(got) != 0 {
			t.Errorf("a pending run has a lease: %+v", got)
		}
		b.claim(ledger.Granted, ledger.Claim{Run: id, Pending: true})
		for _, job := range []string{"", "job"} {
			got := must[[]scheduler.LeaseView](t)(i.Leases(ctx, job))
			if len(got) != 1 || got[0].Name != "job" || got[0].Job != "job" || got[0].Run != id || got[0].Node != "n1" || got[0].TTLMS != 5000 ||
				got[0].Token == "" || time.Until(time.Time(*got[0].Until)).Round(time.Millisecond) != 5*time.Second {
				t.Errorf("got %+v", got)
			}
		}
		time.Sleep(6 * time.Second)
		if got := must[[]scheduler.LeaseView](t)(i.Leases(ctx, "job")); len(got) != 1 || got[0].TTLMS != 0 {
			t.Errorf("lapsed, and nobody reaped it: %+v", got)
		}
		b.settle(id, jobs.OutcomeSucceeded, false)
		if got := must[[]scheduler.LeaseView](t)(i.Leases(ctx, "job")); len(got) != 0 {
			t.Errorf("settled: %+v", got)
		}
		_, err := i.Leases(ctx, "nope")
		refused(t, err, scheduler.ErrUnknownJob, "nope")
	})
}

// TestLeasesOfShards names the parts of a tick, in order, and leaves out the tick as a whole.
func TestLeasesOfShards(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *", Shards: 3})
		i, ctx := c.inspector(), t.Context()
		id := must[string](t)(i.Trigger(ctx, "job", scheduler.TriggerOptions{}))
		b.claim(ledger.Opened, ledger.Claim{Run: id, Pending: true, Shards: 3})
		for _, shard := range []int{2, 0} {
			for _, l := range must[[]ledger.Lease](t)(b.Open(ctx, "job")) {
				if l.Pending() && l.Shard == shard {
					b.claim(ledger.Granted, ledger.Claim{Run: l.Run, Pending: true, Shard: true})
				}
			}
		}
		got := must[[]scheduler.LeaseView](t)(i.Leases(ctx, ""))
		if len(got) != 2 || got[0].Name != "job#0" || got[1].Name != "job#2" || got[1].Shard != 2 || got[1].Shards != 3 {
			t.Errorf("got %+v", got)
		}
	})
}
