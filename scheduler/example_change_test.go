package scheduler_test

import (
	"context"
	"fmt"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// A job for each customer, who come and go while the node runs.
func ExampleNode_Add() {
	redis, err := redistest.Embed()
	if err != nil {
		panic(err)
	}
	defer redis.Close()
	client := redis.Client()
	defer client.Close()
	node, stop := startReports(scheduler.Config{Name: "a1"}, redis)
	defer stop()

	ran := make(chan string, 9)
	err = node.Add(jobs.Job{
		Name: "invoice/acme", Schedule: "@every 1s",
		Func: func(_ context.Context, run *jobs.Run) error {
			ran <- run.Job()
			return nil
		},
	})
	fmt.Println(<-ran, err)
	fmt.Println(node.Remove("invoice/acme"))
	fmt.Println(node.Remove("invoice/umbrella"))
	// Output:
	// invoice/acme <nil>
	// <nil>
	// scheduler: remove jobs: the node has no job "invoice/umbrella" to remove
}
