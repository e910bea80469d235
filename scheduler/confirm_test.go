//go:build unix

package scheduler_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// TestConfirm has a node want its claims confirmed by replicas, and these stand still for a while. Nothing begins meanwhile, little is
// granted and handed back, and it goes on when they are back.
func TestConfirm(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Second)
	defer cancel()
	master, replicas := redistest.StartReplicas(t, 2)
	ran := make(chan time.Time, 1000)
	reg := jobs.NewRegistry()
	for _, name := range []string{"a", "b"} {
		reg.MustAdd(jobs.Job{Name: name, Schedule: "@every 1s", Func: func(_ context.Context, run *jobs.Run) error {
			ran <- run.Tick()
			return nil
		}})
	}
	var granted atomic.Int64
	node := runNode(t, master.Client(t), reg, scheduler.Config{
		Name: "n1", Partitions: 1, Confirm: scheduler.ConfirmMajority, Hooks: &scheduler.Hooks{Claimed: func(scheduler.RunEvent) { granted.Add(1) }},
	})
	next(ctx, t, "the first run", ran)
	for _, r := range replicas {
		if err := r.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	still := time.Now()
	until(ctx, t, still.Add(4*time.Second))
	for len(ran) > 0 {
		if tick := <-ran; tick.After(still) {
			t.Errorf("tick %s was run while no replica answered, since %s", tick, still)
		}
	}
	if n := granted.Swap(0); n > 10 {
		t.Errorf("%d runs were granted in some 5 seconds, most of which had to be handed back; want one attempt or two", n)
	}
	if err := node.Ready(); err == nil || !strings.Contains(err.Error(), "0 of the 1 replicas") {
		t.Errorf("ready while no replica answers: %v", err)
	}
	in, err := scheduler.NewInspector(master.Client(t), "")
	if err != nil {
		t.Fatal(err)
	}
	listed := func(trouble string) { // with its next beat
		t.Helper()
		for {
			nodes, err := in.Nodes(ctx)
			if err != nil || len(nodes) != 1 {
				t.Fatalf("%d nodes, %v", len(nodes), err)
			}
			if got := nodes[0].Trouble; strings.Contains(got, trouble) && (got == "") == (trouble == "") {
				return
			}
			until(ctx, t, time.Now().Add(50*time.Millisecond))
		}
	}
	listed("0 of the 1 replicas")
	for _, r := range replicas {
		if err := r.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	back := time.Now()
	for next(ctx, t, "a tick after the replicas came back", ran).Before(back) {
		continue
	}
	if err := node.Ready(); err != nil {
		t.Errorf("not ready when the replicas are back: %v", err)
	}
	listed("")
}
