package execjob_test

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/execjob"
)

func ExampleNew() {
	reg := jobs.NewRegistry()
	reg.MustAdd(jobs.Job{
		Name:     "greet",
		Schedule: "*/5 * * * *",
		Timeout:  time.Minute,
		Func: execjob.New(execjob.Command{
			Command: []string{"sh", "-c", `echo "$GREETING from $ESCAPEMENT_JOB at $ESCAPEMENT_TICK, token $ESCAPEMENT_TOKEN"`},
			Env:     map[string]string{"GREETING": "hello"},
		}),
	})

	// A node's steps for a granted tick:
	job, _ := reg.Get("greet")
	run := jobs.NewRun(jobs.RunInfo{Job: job.Name, Tick: time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC), Token: 17})
	err := job.Func(context.Background(), run)
	fmt.Print(string(run.Written()))
	fmt.Println(err)
	// Output:
	// hello from greet at 2026-03-01T12:05:00.000Z, token 17
	// <nil>
}

func ExampleNew_failure() {
	f := execjob.New(execjob.Command{Command: []string{"sh", "-c", "echo 'the disk is full' >&2; exit 3"}})
	fmt.Println(f(context.Background(), jobs.NewRun(jobs.RunInfo{Job: "report"})))
	// Output:
	// command sh: exit status 3: the disk is full
}
