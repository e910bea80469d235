package scheduler

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ledger"
)

// A sweep that looked before a pending run was granted reports it as pending after that. The node asks for it
// again and is granted it again; it must not run again.
func TestStaleFindingRunsNothingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := redistest.Embed()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		client := server.Client()
		defer client.Close()
		var runs atomic.Int32
		reg := jobs.NewRegistry()
		reg.MustAdd(jobs.Job{Name: "job", Schedule: "0 0 1 1 *", TTL: 5 * time.Second, Func: func(context.Context, *jobs.Run) error {
			runs.Add(1)
			time.Sleep(3 * time.Second)
			return nil
		}})
		n, err := New(client, reg, Config{Name: "a", Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- n.Run(ctx) }()
		for n.Ready() != nil {
			time.Sleep(10 * time.Millisecond)
		}
		if _, err := n.ledger.Trigger(ctx, "job", ledger.Trigger{Run: "by-hand"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if runs.Load() != 1 {
			t.Fatalf("%d runs: the run by hand has not begun, or too often", runs.Load())
		}
		stale := ledger.Lease{Run: "by-hand", Request: "by-hand", Job: "job", Granted: time.Now().Add(-2 * time.Second).UnixMilli()}
		n.engine.do(func() { n.engine.consider(ledger.Finding{Pending: []ledger.Lease{stale}}) })
		time.Sleep(5 * time.Second)
		if runs.Load() != 1 || n.slots.used() != 0 {
			t.Errorf("%d runs, %d slots taken; want the one run that was asked for, ended", runs.Load(), n.slots.used())
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
