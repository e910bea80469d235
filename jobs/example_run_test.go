package jobs_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/escapement/escapement/jobs"
)

// A job whose payload is decoded. A payload of another type is refused before the function is
// called, with the field's name.
func ExampleTyped() {
	type Report struct {
		Month string `json:"month"`
		Pages int    `json:"pages"`
	}
	job := jobs.Job{
		Name: "report", Schedule: "@monthly",
		Func: jobs.Typed(func(_ context.Context, run *jobs.Run, in Report) error {
			fmt.Printf("%s: %d pages for %q\n", run.Trigger(), in.Pages, in.Month)
			return nil
		}),
	}
	for _, payload := range []string{`{"month": "May", "pages": 3}`, "", `{"month": "May", "pages": "many"}`, `{"moon": "May"}`} {
		run := jobs.NewRun(jobs.RunInfo{Job: job.Name, Trigger: jobs.TriggerManual, Payload: []byte(payload)})
		if err := job.Func(context.Background(), run); err != nil {
			fmt.Println(err, jobs.IsPermanent(err))
		}
	}
	// Output:
	// manual: 3 pages for "May"
	// manual: 0 pages for ""
	// payload.pages: is a JSON string; its type is int true
	// payload.moon: is not a field of it; leave it out, or correct its name true
}

// Lines of a run carry what it is, so that the lines of one run, and of one token, can be found.
func ExampleRun_Logger() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	settle := func(_ context.Context, run *jobs.Run) error {
		run.Logger().Info("settled", "orders", 12)
		return nil
	}
	run := jobs.NewRun(jobs.RunInfo{
		ID: "0199a1", Job: "settle-orders", Tick: time.Date(2026, 3, 1, 12, 5, 0, 0, time.UTC), Token: 17, Logger: logger,
	})
	fmt.Println(settle(context.Background(), run))
	// Output:
	// level=INFO msg=settled job=settle-orders tick=2026-03-01T12:05:00.000Z run=0199a1 token=17 attempt=1 orders=12
	// <nil>
}

// withoutTime leaves out what differs from run to run.
func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// A function's output is stored with the run, and shown by "runs get".
func ExampleRun_Output() {
	count := func(_ context.Context, run *jobs.Run) error {
		fmt.Fprintf(run.Output(), "%d rows\n", 3)
		return nil
	}
	run := jobs.NewRun(jobs.RunInfo{Job: "count"})
	fmt.Println(count(context.Background(), run))
	fmt.Printf("%s", run.Written())
	// Output:
	// <nil>
	// 3 rows
}

// A token goes with every write, so that a database can refuse a run that is late.
func ExampleRun_Token() {
	move := func(_ context.Context, run *jobs.Run) error {
		token := run.Token() // an int64
		fmt.Printf("UPDATE account SET balance = 7, token = %d WHERE id = 1 AND token <= %d\n", token, token)
		return nil
	}
	fmt.Println(move(context.Background(), jobs.NewRun(jobs.RunInfo{Job: "move", Token: 1795267825000820})))
	// Output:
	// UPDATE account SET balance = 7, token = 1795267825000820 WHERE id = 1 AND token <= 1795267825000820
	// <nil>
}

// A job that goes on where the try, or the attempt, before it has stopped.
func ExampleRun_Save() {
	pages := []string{"one", "two", "three"}
	move := func(ctx context.Context, run *jobs.Run) error {
		next, _ := strconv.Atoi(string(run.Saved()))
		for ; next < len(pages); next++ {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			fmt.Println("page", pages[next])
			if err := run.Save(ctx, []byte(strconv.Itoa(next+1))); err != nil {
				return err
			}
			run.Progress(int64(next+1), int64(len(pages)), pages[next])
		}
		return nil
	}
	run := jobs.NewRun(jobs.RunInfo{Job: "move"}) // a test's run: checkpoints stay in memory
	_ = run.Save(context.Background(), []byte("1"))
	fmt.Println(move(context.Background(), run))
	fmt.Println(run.Save(context.Background(), make([]byte, jobs.MaxCheckpoint+1)))
	// Output:
	// page two
	// page three
	// <nil>
	// jobs: a checkpoint of 65537 bytes is larger than 65536; save where the data is instead of the data
}
