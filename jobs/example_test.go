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

	// What a node does with a granted tick:
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
		Overlap:  jobs.OverlapQueue,
		TTL:      time.Second,
	}.Validate()
	fmt.Println(err)
	// Output:
	// schedule: schedule "61 5 30 2 *": minute "61": end of range (61) above maximum (59): 61
	// func: is missing; a job needs a function to call
	// overlap: queue is not there yet; use skip
	// ttl: 1s is outside 3s to 1h0m0s; 15s is the default
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

func ExampleParseSchedule() {
	s, err := jobs.ParseSchedule("30 2 * * *", "Europe/Berlin")
	if err != nil {
		fmt.Println(err)
		return
	}
	// On 29 March the clocks skip from 02:00 to 03:00; the tick is at the first instant after.
	tick := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for range 3 {
		tick = s.Next(tick)
		fmt.Println(tick.Format(time.RFC3339))
	}

	_, err = jobs.ParseSchedule("0 0 30 2 *", "")
	fmt.Println(err)
	// Output:
	// 2026-03-28T01:30:00Z
	// 2026-03-29T01:00:00Z
	// 2026-03-30T00:30:00Z
	// schedule "0 0 30 2 *": never fires: there is no such day in the months given
}

// Every node agrees on the instants of @every, whenever it was started.
func ExampleSchedule_Next() {
	s, err := jobs.ParseSchedule("@every 7m", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, started := range []int{5, 6, 7} {
		fmt.Println(s.Next(time.Date(2026, 3, 1, 12, started, 0, 0, time.UTC)).Format(time.TimeOnly))
	}
	// Output:
	// 12:07:00
	// 12:07:00
	// 12:14:00
}

func ExampleSchedule_Count() {
	s, err := jobs.ParseSchedule("*/15 9-16 * * MON-FRI", "America/New_York")
	if err != nil {
		fmt.Println(err)
		return
	}
	n, last := s.Count(time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 4, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(n, last.Format(time.RFC3339))
	// Output:
	// 704 2026-03-31T20:45:00Z
}
