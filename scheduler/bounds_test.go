package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// Deploys change start, end and days of a job whose schedule stays. Ticks run within the bounds
// only; instants outside leave no row of any kind. cluster.end audits the records, which contain
// the bounds in force.
func TestBoundsOfTicks(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		began := time.Now()
		after := func(sec int) time.Time { return began.Add(time.Duration(sec) * time.Second) }
		var node *running
		for i, x := range []struct {
			edit func(j *jobs.Job)
			next string // of the job at the end of the step
		}{
			{func(j *jobs.Job) { j.StartAt, j.EndAt = after(5), after(8) }, "-"},
			{func(j *jobs.Job) { j.StartAt = after(14) }, "2000-01-01T00:00:20.000Z"},
			{func(j *jobs.Job) { j.Except = []string{"2000-01-01"} }, "2000-01-02T00:00:00.000Z"},
			{func(j *jobs.Job) { j.Only = []string{"2000-01-01"} }, "2000-01-01T00:00:40.000Z"},
			{func(j *jobs.Job) { j.Only, j.EndAt = []string{"2000-01-01..2000-01-03"}, after(44) }, "-"},
		} {
			j := eachSecond("job", s)
			x.edit(&j)
			if node != nil {
				c.leave(node)
			}
			node = c.start("a", scheduler.Config{Revision: fmt.Sprint(i)}, j)
			time.Sleep(time.Until(after(10*(i+1) - 1).Add(500 * time.Millisecond)))
			next := "-"
			if v := c.job("job"); !v.Next.IsZero() {
				next = ops.FormatTime(v.Next)
			}
			if next != x.next {
				t.Errorf("step %d: the next tick is %s, want %s", i, next, x.next)
			}
		}
		c.end()
		s.check(t)
		var got []int
		for _, at := range s.ticks("job") {
			got = append(got, int(at.Sub(began)/time.Second))
		}
		if text := fmt.Sprint(got); text != "[5 6 7 8 14 15 16 17 18 19 30 31 32 33 34 35 36 37 38 39 40 41 42 43 44]" {
			t.Errorf("ticks at %s", text)
		}
		for outcome, n := range outcomes(c.runs("job")) {
			if outcome != "succeeded" && n > 1 {
				t.Errorf("%d rows of %s", n, outcome)
			}
		}
	})
}

// A job that has had its max_runs is finished: it is shown without a next tick, its node is well, a
// run by hand goes on, and a promotion of a generation that allows more lets it go on from there,
// with one count.
func TestMaxRunsOverAPromotion(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		version := func(most int) jobs.Job {
			j := eachSecond("job", s)
			j.MaxRuns = most
			return j
		}
		c.start("a", scheduler.Config{Generation: "one"}, version(3))
		time.Sleep(time.Second)
		c.start("b", scheduler.Config{Generation: "two"}, version(5))
		time.Sleep(10 * time.Second)
		v := c.job("job")
		if !v.Next.IsZero() || v.Ran != 3 || v.MaxRuns != 3 || v.Counts[jobs.OutcomeSucceeded] != 3 || v.Counts[jobs.OutcomeMissed] != 0 {
			t.Errorf("after max_runs: %+v", v)
		}
		if ticks, err := c.ops().ListTicks(t.Context(), "job", time.Time{}, 10); err != nil || len(ticks) != 0 {
			t.Errorf("its next ticks: %v, %v", ticks, err)
		}
		c.promote("two", ops.PromoteOptions{})
		time.Sleep(1500 * time.Millisecond)
		if ticks, err := c.ops().ListTicks(t.Context(), "job", time.Time{}, 10); err != nil || len(ticks)+int(c.job("job").Ran) != 5 {
			t.Errorf("after %d of 5 its next ticks: %v, %v", c.job("job").Ran, ticks, err)
		}
		time.Sleep(10 * time.Second)
		if v := c.job("job"); !v.Next.IsZero() || v.Ran != 5 {
			t.Errorf("after the promotion: %+v", v)
		}
		c.end()
		if s.check(t); len(s.ticks("job")) != 5 {
			t.Errorf("ticks at %v", s.ticks("job"))
		}
	})
}
