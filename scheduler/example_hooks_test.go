package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// Hooks report a node's events to the program. Here they count for a metrics page; a job that fails
// at first is called again inside the same run.
func ExampleHooks() {
	redis, err := redistest.Embed()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	client := redis.Client()
	defer client.Close()

	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{
		Name: "print-labels", Schedule: "@every 1s", Retry: jobs.Retry{Max: 3, Backoff: 10 * time.Millisecond},
		Func: func(_ context.Context, run *jobs.Run) error {
			if run.Try() < 3 {
				return errors.New("no paper")
			}
			return nil
		},
	})
	ctx, stop := context.WithCancel(context.Background())
	started := 0 // no lock: the hooks are called one after another
	node, err := scheduler.New(client, reg, scheduler.Config{
		Name: "a1", Logger: slog.New(slog.DiscardHandler),
		Hooks: &scheduler.Hooks{
			Started: func(scheduler.RunEvent) { started++ },
			Settled: func(e scheduler.SettledEvent) {
				if started == 1 {
					fmt.Println(e.Job, "on", e.Node, e.Outcome, "after", e.Tries, "tries")
				}
				stop()
			},
		},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(node.Run(ctx), node.HooksDropped())
	// Output:
	// print-labels on a1 succeeded after 3 tries
	// <nil> 0
}
