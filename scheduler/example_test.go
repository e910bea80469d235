package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A node: register functions, run it, stop it by its context.
func Example() {
	redis, err := redistest.Embed() // in production: scheduler.Connect("redis://localhost:6379")
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	client := redis.Client()
	defer client.Close()

	ran := make(chan *jobs.Run)
	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{
		Name:     "settle-orders",
		Schedule: "@every 1s",
		Func: func(_ context.Context, run *jobs.Run) error {
			ran <- run
			return nil
		},
	})
	node, err := scheduler.New(client, reg, scheduler.Config{Name: "a1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- node.Run(ctx) }()

	first, second := <-ran, <-ran
	fmt.Println(first.Job(), "on", first.Node())
	fmt.Println("one second apart:", second.Tick().Sub(first.Tick()))
	fmt.Println("token grew:", second.Token() > first.Token())
	stop()
	fmt.Println(<-stopped)
	// Output:
	// settle-orders on a1
	// one second apart: 1s
	// token grew: true
	// <nil>
}
