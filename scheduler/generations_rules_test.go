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

// The bounds of a job, its jitter and its hand-offs count across promotions: ticks of both
// generations are counted together, the last tick is the last for both, and an attempt that another
// generation takes over finds the checkpoint (P1, P2, P7).
func TestPromoteRules(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		last := time.Now().Add(13 * time.Second).Truncate(time.Second)
		first, found := make(chan string, 1), make(chan string, 1) // nodes of the two attempts, the second with its checkpoint
		list := func(ttl time.Duration) []jobs.Job {
			counted, ends, moved := eachSecond("counted", s), eachSecond("ends", s), eachSecond("moved", s)
			counted.MaxRuns, ends.EndAt, moved.Jitter = 9, last, 700*time.Millisecond
			handed := jobs.Job{Name: "handed", Schedule: "0 0 0 1 1 *", Retry: jobs.Retry{
				Max: 1, On: jobs.RetryOtherNode, Backoff: 4 * time.Second, MaxBackoff: 4 * time.Second,
			}, Func: func(ctx context.Context, r *jobs.Run) error {
				if r.Attempt() == 1 {
					first <- r.Node()
					return errors.Join(r.Save(ctx, []byte("half")), errors.New("no disk"))
				}
				found <- r.Node() + " " + string(r.Saved())
				return nil
			}}
			all := []jobs.Job{counted, ends, moved, handed}
			for i := range all {
				all[i].TTL = ttl // not the same definition in both generations
			}
			return all
		}
		c.twoGenerations(server, scheduler.Config{}, list(5*time.Second), list(6*time.Second))
		must[string](t)(c.ops().Trigger(t.Context(), "handed", ops.TriggerOptions{}))
		if on := <-first; on[0] != 'a' {
			t.Errorf("before the promotion it ran on %s", on)
		}
		time.Sleep(time.Second)
		c.promote("two", ops.PromoteOptions{})
		if got := <-found; got[0] != 'b' || !strings.HasSuffix(got, " half") {
			t.Errorf("the second attempt: %s", got)
		}
		c.promote("one", ops.PromoteOptions{})
		time.Sleep(8 * time.Second)
		if n := c.job("counted").Counts[jobs.OutcomeSucceeded]; n != 9 || len(s.ticks("counted")) != 9 {
			t.Errorf("%d ticks counted, %d ran, want 9", n, len(s.ticks("counted")))
		}
		if ran := s.ticks("ends"); len(ran) == 0 || !ran[len(ran)-1].Equal(last) {
			t.Errorf("the last tick is %v, want %v", ran, last)
		}
		moved := s.ticks("moved")
		for i, at := range moved {
			if i > 0 && at.Sub(moved[i-1]) != time.Second {
				t.Errorf("moved ticks: %v after %v", at, moved[i-1])
			}
		}
		if len(moved) < 15 || moved[0].Truncate(time.Second).Equal(moved[0]) {
			t.Errorf("moved ticks: %v", moved)
		}
		c.end()
		s.check(t)
	})
}
