package scheduler_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/ops"
)

func TestRewind(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		ctx, i, s := t.Context(), c.ops(), &sink{}
		minutely := eachSecond("job", s)
		minutely.Schedule, minutely.CatchUp, minutely.CatchUpMax = "* * * * *", jobs.CatchUpAll, 100
		follower := jobs.Job{Name: "follower", After: []string{"job"}, Func: minutely.Func}
		c.start("a", scheduler.Config{Partitions: 1}, minutely, follower)
		began := time.Now()
		time.Sleep(10*time.Minute + 30*time.Second)

		for _, tt := range []struct {
			job  string
			to   time.Time
			kind error
			word string
		}{
			{"nope", began, ops.ErrUnknownJob, "nope"},
			{"follower", began, ops.ErrRefused, "follows job"},
			{"job", began.Add(-time.Hour), ops.ErrRefused, "jobs get"},
			{"job", time.Now().Add(time.Hour), ops.ErrRefused, "not later"},
			{"job", time.Now(), ops.ErrRefused, "not later"},
			{"job", time.UnixMilli(-1), ops.ErrRefused, "1970 to 9999"},
			{"job", time.Date(9999, 12, 31, 23, 59, 30, 0, time.UTC), ops.ErrRefused, "no tick"},
		} {
			_, err := i.Rewind(ctx, tt.job, tt.to)
			refused(t, err, tt.kind, tt.word)
		}
		if from := c.job("job").HistoryFrom; !from.Equal(began.Add(time.Minute)) {
			t.Errorf("the history begins at %s", from)
		}

		slow := c.ops(around{script: "rewind", before: func() { time.Sleep(1100 * time.Millisecond) }}) // longer than max_skew
		_, err := slow.Rewind(ctx, "job", began.Add(4*time.Minute))
		refused(t, err, ledger.ErrClock)

		to := began.Add(4*time.Minute + time.Millisecond)
		if tick := must[time.Time](t)(i.Rewind(ctx, "job", to)); !tick.Equal(began.Add(5 * time.Minute)) {
			t.Errorf("it begins again with %s", tick)
		}
		time.Sleep(20 * time.Second)
		again := 0
		for _, r := range c.runs("job") {
			if r.Attempt == 2 {
				again++
			}
		}
		if again != 6 {
			t.Errorf("%d ticks ran as a second attempt, want ticks 5 to 10", again)
		}
	})
}

func TestLastAfterARewind(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		i, ctx := c.ops(), t.Context()
		n := c.start("a", scheduler.Config{}, eachSecond("job", &sink{}))
		time.Sleep(8*time.Second + 500*time.Millisecond)
		c.leave(n)
		from := c.job("job").HistoryFrom
		tick := must[time.Time](t)(i.Rewind(ctx, "job", from.Add(3*time.Second)))
		if v := c.job("job"); v.Last.IsZero() || !v.Last.Equal(tick.Add(-time.Second)) {
			t.Errorf("set back to %s, the last tick is %v", tick, v.Last)
		}
		_, err := i.Rewind(ctx, "job", tick)
		refused(t, err, ops.ErrRefused, "its cursor is at "+ops.FormatTime(tick), "only goes back")
		must[time.Time](t)(i.Rewind(ctx, "job", from))
		if v := c.job("job"); !v.Last.IsZero() {
			t.Errorf("set back to its beginning, the last tick is %v", v.Last)
		}
	})
}
