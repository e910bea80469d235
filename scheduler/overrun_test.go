package scheduler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
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
		if run.Outcome != "succeeded" || run.DurationMS != 6000 {
			t.Errorf("%+v", run)
		}
		output := must[scheduler.RunView](t)(c.ops().Run(t.Context(), run.Run)).Output
		if !strings.HasPrefix(output, "escapement: the function returned ") || !strings.HasSuffix(output, "s after its context had ended (jobs: the job's timeout passed); what it returned counts: succeeded\n") {
			t.Errorf("output %q", output)
		}
		for _, words := range []string{"a job's function goes on though its context has ended", "a job's function has returned long after its context had ended"} {
			if n := c.logs.count(words); n != 1 || c.logs.count("job=six") != 2 {
				t.Errorf("%q is logged %d times", words, n)
			}
		}
		if strings.Contains(c.logs.String(), "job=short") {
			t.Error("half a second is no overrun")
		}
	})
}

// A node that drains names the runs that it waits for, and those that never end.
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
