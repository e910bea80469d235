package scheduler_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// A job is deleted after a node has read it and before the node has registered it. Nothing of the
// job is left, whether or not the registration is answered, and it runs when it is stored again.
func TestStoredJobDeletedBeforeItsRegistration(t *testing.T) {
	for name, answer := range map[string]error{"answered": nil, "not answered": errors.New("the connection is gone")} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				s := &sink{}
				c.handlers = report(s)
				client, armed, until := c.client(), false, time.Time{}
				client.AddHook(around{script: "announce", before: func() {
					if armed {
						armed, until = false, time.Now().Add(1500*time.Millisecond)
						if err := c.ops().Delete(t.Context(), "tenant-1", time.Time{}); err != nil {
							t.Error(err)
						}
					}
				}})
				for _, script := range []string{"define", "current"} {
					client.AddHook(around{script: script, answer: func() error {
						if _, err := c.ops().GetJob(t.Context(), "tenant-1"); err == nil && time.Now().Before(until) {
							return answer
						}
						return nil
					}})
				}
				c.startOver(client, "a", scheduler.Config{})
				time.Sleep(time.Second)
				armed = true
				must[ops.StoredJob](t)(c.ops().PutJob(t.Context(), tenant(1), ops.PutOptions{}))
				time.Sleep(4 * time.Second)
				if _, err := c.ops().GetJob(t.Context(), "tenant-1"); armed || !errors.Is(err, ops.ErrUnknownJob) {
					t.Errorf("after it was deleted: %v", err)
				}
				if n := len(s.ticks("tenant-1")); n > 0 {
					t.Errorf("%d runs after it was deleted", n)
				}
				must[ops.StoredJob](t)(c.ops().PutJob(t.Context(), tenant(1), ops.PutOptions{New: true}))
				time.Sleep(5 * time.Second)
				if n := len(s.ticks("tenant-1")); n < 3 {
					t.Errorf("stored again, it ran %d times in five seconds", n)
				}
				c.end()
				s.check(t)
			})
		})
	}
}

// A job whose upstream was deleted is a problem.
func TestStoredJobWithoutUpstream(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		c.handlers = report(&sink{})
		c.start("a", scheduler.Config{})
		time.Sleep(time.Second)
		after := tenant(2)
		after.Schedule, after.After = "", []string{"tenant-1"}
		must[[]ops.StoredJob](t)(c.ops().PutJobs(t.Context(), []jobs.Job{tenant(1), after}, ops.PutOptions{}))
		time.Sleep(1200 * time.Millisecond)
		if p := c.problem("job_no_upstream"); p.Code != "" {
			t.Errorf("with its upstream: %+v", p)
		}
		time.Sleep(500 * time.Millisecond)
		if err := c.ops().Delete(t.Context(), "tenant-1", time.Time{}); err != nil {
			t.Error(err)
		}
		if p := c.problem("job_no_upstream"); p.On != "tenant-2" || !strings.Contains(p.Text, "tenant-1") {
			t.Errorf("without it: %+v", p)
		}
		c.end()
	})
}

// A stored job can be run by hand at once. Without a node for the job, the error is not "unknown
// job".
func TestStoredJobRunAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.handlers = report(s)
		a := c.start("a", scheduler.Config{})
		time.Sleep(time.Second)
		yearly := tenant(1)
		yearly.Schedule = "0 0 1 1 *"
		must[ops.StoredJob](t)(c.ops().PutJob(t.Context(), yearly, ops.PutOptions{}))
		must[string](t)(c.ops().Trigger(t.Context(), "tenant-1", ops.TriggerOptions{}))
		time.Sleep(time.Second)
		if n := len(s.ticks("tenant-1")); n != 1 {
			t.Errorf("%d runs", n)
		}
		c.leave(a)
		must[ops.StoredJob](t)(c.ops().PutJob(t.Context(), tenant(2), ops.PutOptions{}))
		asked := time.Now()
		_, err := c.ops().Trigger(t.Context(), "tenant-2", ops.TriggerOptions{})
		if !errors.Is(err, ops.ErrRefused) || errors.Is(err, ops.ErrUnknownJob) || !strings.Contains(err.Error(), "it is stored, and no node has taken it yet") {
			t.Errorf("without a node: %v", err)
		}
		if took := time.Since(asked); took > 2500*time.Millisecond {
			t.Errorf("the answer took %v", took)
		}
		asked = time.Now()
		if _, err := c.ops().Trigger(t.Context(), "tenant-3", ops.TriggerOptions{}); !errors.Is(err, ops.ErrUnknownJob) || time.Since(asked) > 0 {
			t.Errorf("a job that is not stored: %v, after %v", err, time.Since(asked))
		}
		c.end()
	})
}

// A deletion waits for a run in flight, and leaves the history when that takes too long.
func TestStoredJobDeletedWhileItRuns(t *testing.T) {
	for name, x := range map[string]struct {
		takes, waits time.Duration
		words        string
	}{
		"ends soon": {takes: 3 * time.Second, waits: 3500 * time.Millisecond},
		"goes on":   {takes: 20 * time.Second, waits: 5500 * time.Millisecond, words: "its history stays, delete it again"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				began := make(chan struct{}, 1)
				c.handlers = map[string]jobs.Func{"report": func(_ context.Context, r *jobs.Run) error {
					began <- struct{}{}
					time.Sleep(x.takes)
					return nil
				}}
				c.start("a", scheduler.Config{})
				time.Sleep(time.Second)
				must[ops.StoredJob](t)(c.ops().PutJob(t.Context(), tenant(1), ops.PutOptions{}))
				<-began
				asked := time.Now()
				err := c.ops().Delete(t.Context(), "tenant-1", time.Time{})
				if x.words == "" && err != nil || x.words != "" && (!errors.Is(err, ops.ErrRefused) || !strings.Contains(err.Error(), x.words)) {
					t.Errorf("the answer: %v", err)
				}
				if took := time.Since(asked); took > x.waits {
					t.Errorf("the answer took %v", took)
				}
				if _, err := c.ops().GetJob(t.Context(), "tenant-1"); errors.Is(err, ops.ErrUnknownJob) != (x.words == "") {
					t.Errorf("after it was deleted: %v", err)
				}
				time.Sleep(x.takes)
				if len(began) > 0 {
					t.Error("it ran once more")
				}
				c.end()
			})
		})
	}
}
