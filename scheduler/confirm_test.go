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
	"github.com/escapement/escapement/scheduler/ops"
)

// A node wants its claims confirmed by replicas, and these stand still for a while. Nothing begins
// meanwhile, little is granted and handed back, and it goes on when they are back.
func TestConfirm(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), standstill)
	defer cancel()
	master, replicas := redistest.StartReplicas(t, 2)
	ran := make(chan time.Time, 1000)
	work := func(_ context.Context, run *jobs.Run) error {
		ran <- run.Tick()
		return nil
	}
	var granted atomic.Int64
	node := runNode(t, master.Client(t), scheduler.Config{
		Name: "n1", Partitions: 1, Confirm: scheduler.ConfirmMajority, Hooks: &scheduler.Hooks{Claimed: func(scheduler.RunEvent) { granted.Add(1) }},
	}, jobs.Job{Name: "a", Schedule: "@every 1s", Func: work}, jobs.Job{Name: "b", Schedule: "@every 1s", Func: work})
	for time.Since(next(ctx, t, "a run that is not late", ran)) > time.Second/2 { // the first ones are: a new server is watched for a moment
		continue
	}
	for _, r := range replicas {
		if err := r.Pause(); err != nil {
			t.Fatal(err)
		}
	}
	still := time.Now()
	<-time.After(4 * time.Second)
	for len(ran) > 0 {
		if tick := <-ran; tick.After(still) {
			t.Errorf("tick %s was run while no replica answered, since %s", tick, still)
		}
	}
	if n := granted.Swap(0); n > 10 {
		t.Errorf("%d runs were granted in some 5 seconds, most of which had to be handed back; want one attempt or two", n)
	}
	notReady(t, node, "0 of the 1 replicas")
	in := must[*ops.Client](t)(ops.New(master.Client(t), ""))
	listed := func(trouble string) { // with its next beat
		t.Helper()
		for {
			nodes := must[[]ops.NodeView](t)(in.ListNodes(ctx))
			if len(nodes) != 1 {
				t.Fatalf("%d nodes", len(nodes))
			}
			if got := nodes[0].Trouble; strings.Contains(got, trouble) && (got == "") == (trouble == "") {
				return
			}
			<-time.After(50 * time.Millisecond)
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
