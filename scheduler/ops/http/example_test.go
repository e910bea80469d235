package opshttp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
	"github.com/escapement/escapement/scheduler/ops/http"
)

// A program serves the API of its namespace beside its own pages, and another one without access to
// Redis runs a job with it.
func Example() {
	server, err := redistest.Embed()
	if err != nil {
		panic(err)
	}
	defer server.Close()
	client := server.Client() // in production: scheduler.Connect("redis://localhost:6379")
	defer client.Close()
	stop := startNode(client)
	defer stop()

	admin, err := ops.New(client, "escapement")
	if err != nil {
		panic(err)
	}
	access := opshttp.Access{Tokens: map[string]opshttp.Identity{"a long random text": {Name: "ci", Role: ops.Operator}}}
	handler := opshttp.New(admin, opshttp.Config{Access: access})
	mux := http.NewServeMux()
	mux.Handle(opshttp.Prefix, handler) // beside the program's own pages
	web := httptest.NewServer(mux)
	defer web.Close()

	remote, err := opshttp.NewClient(web.URL, opshttp.ClientConfig{Token: "a long random text"})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	id, err := remote.Trigger(ctx, "report", ops.TriggerOptions{})
	if err != nil {
		panic(err)
	}
	run, err := remote.WaitRun(ctx, id)
	if err != nil {
		panic(err)
	}
	fmt.Println(run.Job, run.Outcome, run.Output)
	_, err = remote.GetJob(ctx, "invoice")
	fmt.Println(errors.Is(err, ops.ErrUnknownJob))
	// Output:
	// report succeeded 3 pages
	// true
}

// startNode runs a node with the job "report".
func startNode(client redis.UniversalClient) (stop func()) {
	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{Name: "report", Schedule: "0 6 * * *", Func: func(_ context.Context, run *jobs.Run) error {
		_, err := fmt.Fprint(run.Output(), "3 pages")
		return err
	}})
	node, err := scheduler.New(client, reg, scheduler.Config{Name: "a1", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- node.Run(ctx) }()
	for node.Ready() != nil {
		<-time.After(time.Millisecond)
	}
	return func() {
		cancel()
		if err := <-ended; err != nil {
			panic(err)
		}
	}
}
