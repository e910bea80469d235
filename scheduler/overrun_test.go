package scheduler_test

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// A function that ignores its context is named when it goes on, and when it has returned, in the
// log and in the run's output. What it returns counts: nil is a success.
func TestOverrun(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		deaf := func(name string, d time.Duration) jobs.Job {
			return jobs.Job{Name: name, Schedule: "@every 1m", Timeout: time.Second, Func: func(context.Context, *jobs.Run) error {
				time.Sleep(d)
				return nil
			}}
		}
		c.start("a", scheduler.Config{}, deaf("six", 6*time.Second), deaf("short", 1500*time.Millisecond))
		time.Sleep(75 * time.Second)
		run := c.runs("six")[0]
		if run.Outcome != jobs.OutcomeSucceeded || run.Duration.Milliseconds() != 6000 {
			t.Errorf("%+v", run)
		}
		overran(t, c, run, `^escapement: try 1 of the function returned [0-9.]+s after its context had ended \(jobs: the job's timeout passed\); what it returned counts: succeeded\n$`)
		if strings.Contains(c.logs.String(), "job=short") {
			t.Error("half a second is no overrun")
		}
	})
}

// A try whose own time is over is named as the function is, with its number, also where a later try
// succeeds.
func TestOverrunOfATry(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		c.start("a", scheduler.Config{}, jobs.Job{Name: "job", Schedule: "@every 1m", Timeout: 30 * time.Second,
			Retry: jobs.Retry{Max: 1, Backoff: time.Second, Timeout: time.Second}, Func: func(ctx context.Context, r *jobs.Run) error {
				if r.Try() == 2 {
					return nil
				}
				time.Sleep(6 * time.Second)
				return context.Cause(ctx)
			}})
		time.Sleep(75 * time.Second)
		run := c.runs("job")[0]
		if run.Outcome != jobs.OutcomeSucceeded || run.Tries != 2 {
			t.Errorf("%+v", run)
		}
		overran(t, c, run, `^escapement: try 1 of the function returned [0-9.]+s after its context had ended \(jobs: the timeout of one try passed\)\n$`)
	})
}

// overran checks that a run's first try is named twice in the log, and in the run's output.
func overran(t *testing.T, c *cluster, run ops.RunView, want string) {
	t.Helper()
	if got := must[ops.RunView](t)(c.ops().GetRun(t.Context(), run.Run)).Output; !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("output %q", got)
	}
	for _, words := range []string{"a job's function goes on though its context has ended", "a job's function has returned long after its context had ended"} {
		if n := len(regexp.MustCompile(words+`.* run=`+run.Run+` try=1 `).FindAllString(c.logs.String(), -1)); n != 1 || c.logs.count(words) != 1 {
			t.Errorf("%q is logged %d times: %s", words, n, c.logs.String())
		}
	}
}

// A draining node names the runs that it waits for, and the runs that never end.
func TestDrainNamesItsRuns(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		enough := make(chan struct{})
		a := c.start("a", scheduler.Config{DrainTimeout: 25 * time.Second}, jobs.Job{Name: "deaf", Schedule: "@every 1m", Func: func(context.Context, *jobs.Run) error {
			<-enough
			return nil
		}})
		time.Sleep(65 * time.Second)
		a.stop()
		<-a.done
		if a.err == nil || !strings.Contains(a.err.Error(), "1 job functions did not end within 10s") || !strings.Contains(a.err.Error(), ": deaf (") {
			t.Errorf("%v", a.err)
		}
		a.err = nil // it was to be
		if waits, over := c.logs.count("draining: the node waits for its runs\" node=a runs=\"deaf ("), c.logs.count("the drain time is over: the node ends the contexts of its runs\" node=a runs=\"deaf ("); waits != 2 || over != 1 {
			t.Errorf("named %d times while it waited, and %d times when it gave up", waits, over)
		}
		close(enough)
	})
}
