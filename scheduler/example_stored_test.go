package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// A job for one tenant, stored while a node runs that has its handler.
func ExampleClient_PutJob() {
	redis, err := redistest.Embed()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	client := redis.Client() // in production: scheduler.Connect("redis://localhost:6379")
	defer client.Close()
	type tenant struct {
		ID int `json:"id"`
	}
	reported := make(chan int)
	reg := jobs.NewRegistry()
	if err := jobs.HandleTyped(reg, "report", func(ctx context.Context, _ *jobs.Run, in tenant) error {
		select {
		case reported <- in.ID:
		case <-ctx.Done():
		}
		return nil
	}); err != nil {
		panic(err)
	}
	node, err := scheduler.New(client, reg, scheduler.Config{Name: "a1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- node.Run(ctx) }()

	admin, err := ops.New(client, "escapement")
	if err != nil {
		panic(err)
	}
	job := jobs.Job{Name: "report/tenant-7", Handler: "report", Payload: []byte(`{"id": 7}`), Schedule: "* * * * * *"}
	for { // until the node has declared its handler
		if _, err = admin.PutJob(ctx, job, ops.PutOptions{}); err == nil {
			break
		}
	}
	fmt.Println("tenant", <-reported)
	stop()
	fmt.Println(<-ended)
	// Output:
	// tenant 7
	// <nil>
}
