package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
)

func ExampleJob_WithDefaults() {
	job := jobs.Job{
		Name:     "import",
		Schedule: "H/15 * * * *",
		Overlap:  jobs.OverlapQueue,
		CatchUp:  jobs.CatchUpAll,
		OnCrash:  jobs.OnCrashRerun,
		Retry:    jobs.Retry{Max: 5, MaxBackoff: 10 * time.Second},
	}.WithDefaults(jobs.Defaults{})
	fmt.Println(job.Overlap, job.CatchUp, job.CatchUpMax, job.OnCrash, job.RerunMax)
	fmt.Println(job.Retry.Max, job.Retry.Backoff, job.Retry.MaxBackoff)
	// Output:
	// queue all 10 rerun 3
	// 5 1s 10s
}

// A setting that does nothing is refused, as are settings that contradict each other.
func ExampleJob_Validate_relations() {
	err := jobs.Job{
		Name:       "report",
		Schedule:   "@hourly",
		Func:       func(context.Context, *jobs.Run) error { return nil },
		CatchUpMax: 5,
		Retry:      jobs.Retry{Max: 2, Backoff: 3 * time.Minute},
	}.Validate()
	fmt.Println(err)
	// Output:
	// catch_up_max: 5 is only used with catch_up: all; set that or leave this out
	// retry.max_backoff: 1m is less than retry.backoff, 3m; raise the one or lower the other
}

func ExampleRegistry_Check() {
	reg := jobs.NewRegistry()
	work := func(context.Context, *jobs.Run) error { return nil }
	reg.MustAdd(jobs.Job{Name: "import", Schedule: "@hourly", Func: work})
	reg.MustAdd(jobs.Job{Name: "totals", After: []string{"imports"}, Func: work})
	reg.MustAdd(jobs.Job{Name: "mails", After: []string{"letters"}, Func: work})
	reg.MustAdd(jobs.Job{Name: "letters", After: []string{"mails"}, Func: work})
	fmt.Println(reg.Check())
	// Output:
	// job "letters": after: jobs wait for each other in a circle: letters -> mails -> letters; give one of them a schedule
	// job "totals": after: there is no job "imports"; did you mean "import"
}

func ExamplePermanent() {
	var errNoAccount = errors.New("no such account")
	pay := func(context.Context, *jobs.Run) error {
		return jobs.Permanent(fmt.Errorf("paying the invoice: %w", errNoAccount))
	}
	err := pay(context.Background(), nil)
	fmt.Println(err)
	fmt.Println(jobs.IsPermanent(err), errors.Is(err, errNoAccount))
	// Output:
	// paying the invoice: no such account
	// true true
}
