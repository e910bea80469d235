package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

// Deploys change start, end and days of a job whose schedule stays. There are ticks within the bounds only, and those outside leave no
// row of any kind. The books, which cluster.end examines, say which bounds were in force.
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
			if v := c.job("job"); v.Next != nil {
				next = v.Next.String()
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
