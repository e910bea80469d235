package jobs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
)

func ExampleRegistry() {
	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{
		Name:     "settle-orders",
		Schedule: "*/5 * * * *",
		Timeout:  2 * time.Minute,
		Func: func(_ context.Context, run *jobs.Run) error {
			fmt.Println("settling up to", run.Tick().Format(time.RFC3339), "with token", run.Token())
			return nil
		},
	})
	for _, job := range reg.All() {
		fmt.Println(job.Name, job.TimeZone, job.TTL, job.Overlap, job.CatchUp)
	}

	// A node's work with a granted tick:
	job, _ := reg.Get("settle-orders")
	run := jobs.NewRun(jobs.RunInfo{Job: job.Name, Tick: time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC), Token: 17})
	if err := job.Func(context.Background(), run); err != nil {
		fmt.Println(err)
	}
	// Output:
	// settle-orders UTC 15s skip latest
	// settling up to 2026-03-01T12:05:00Z with token 17
}

func ExampleJob_Validate() {
	err := jobs.Job{
		Name:     "report",
		Schedule: "61 5 30 2 *",
		TTL:      time.Second,
	}.Validate()
	fmt.Println(err)
	// Output:
	// schedule: schedule "61 5 30 2 *": minute "61": 61 is outside 0 to 59
	// ttl: 1s is outside 3s to 1h; leave it out for 15s
	// func: is missing; a job needs a function to call, or the name of a handler
}

func ExampleJob_Definition() {
	job := jobs.Job{Name: "report", Schedule: "@daily", TimeZone: "Europe/Berlin", Timeout: time.Minute}
	definition := job.Definition()
	text, err := json.Marshal(definition)
	fmt.Println(string(text), err)

	job.Timeout = 2 * time.Minute
	fmt.Println(definition.Digest() == job.Definition().Digest())
	// Output:
	// {"v":1,"name":"report","schedule":"@daily","time_zone":"Europe/Berlin","timeout_ms":60000,"ttl_ms":15000} <nil>
	// false
}
