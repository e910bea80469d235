package scheduler_test

import (
	"context"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

func TestRewind(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		ctx, i, s := t.Context(), c.inspector(), &sink{}
		minutely := eachSecond("job", s)
		minutely.Schedule, minutely.CatchUp, minutely.CatchUpMax = "* * * * *", jobs.CatchUpAll, 100
		follower := jobs.Job{Name: "follower", After: "job", Func: minutely.Func}
		latest := minutely
		latest.Name, latest.CatchUp, latest.CatchUpMax = "latest", jobs.CatchUpLatest, 0
		c.start("a", scheduler.Config{}, minutely, follower, latest)
		began := time.Now()
		time.Sleep(10*time.Minute + 30*time.Second)

		for _, tt := range []struct {
			job  string
			to   time.Time
			kind error
			word string
		}{
			{"nope", began, scheduler.ErrUnknownJob, "nope"},
			{"follower", began, scheduler.ErrRefused, "follows job"},
			{"job", began.Add(-time.Hour), scheduler.ErrRefused, "jobs get"},
			{"job", time.Now().Add(time.Hour), scheduler.ErrRefused, "not behind"},
			{"job", time.Now(), scheduler.ErrRefused, "not behind"},
			{"job", time.UnixMilli(-1), scheduler.ErrRefused, "1970 to 9999"},
			{"job", time.Date(9999, 12, 31, 23, 59, 30, 0, time.UTC), scheduler.ErrRefused, "no tick"},
		} {
			_, err := i.Rewind(ctx, tt.job, tt.to)
			refused(t, err, tt.kind, tt.word)
		}
		if from := c.job("job").HistoryFrom; !time.Time(*from).Equal(began.Add(time.Minute)) {
			t.Errorf("the history begins at %s", from)
		}

		to := began.Add(4*time.Minute + time.Millisecond)
		for _, job := range []string{"job", "latest"} {
			if tick := must[time.Time](t)(i.Rewind(ctx, job, to)); !tick.Equal(began.Add(5 * time.Minute)) {
				t.Errorf("%s begins again with %s", job, tick)
			}
		}
		time.Sleep(20 * time.Second)
		again := make(map[string]int)
		for _, job := range []string{"job", "latest"} {
			for _, r := range c.runs(job) {
				if r.Attempt == 2 {
					again[job]++
				}
			}
		}
		if again["job"] != 6 || again["latest"] != 1 {
			t.Errorf("ran as a second attempt: %v, want ticks 5 to 10 of job, and the last of latest", again)
		}
		if got := outcomes(c.runs("latest")); got["missed(late)"] != 5 || got["superseded(rewound)"] != 1 {
			t.Errorf("catch_up latest: %v", got)
		}
		time.Sleep(time.Minute)
		if r := c.runs("job")[0]; r.Attempt != 1 || !time.Time(*r.Tick).Equal(began.Add(11*time.Minute)) {
			t.Errorf("the tick after those: %+v", r)
		}
	})
}

// Runs beside which no other may get the same attempt's number.
func TestRewindBesideARun(t *testing.T) {
	for name, overlap := range map[string]jobs.Overlap{"skip": jobs.OverlapSkip, "allow": jobs.OverlapAllow} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				ctx, i := t.Context(), c.inspector()
				c.start("a", scheduler.Config{}, jobs.Job{Name: "job", Schedule: "* * * * *", Overlap: overlap, Func: func(ctx context.Context, r *jobs.Run) error {
					time.Sleep(20 * time.Second)
					return nil
				}})
				began := time.Now()
				time.Sleep(2*time.Minute + 5*time.Second)
				_, err := i.Rewind(ctx, "job", began)
				refused(t, err, scheduler.ErrRefused, "in flight")
				time.Sleep(30 * time.Second)
				if _, err := i.Trigger(ctx, "job", scheduler.TriggerOptions{At: time.Now().Add(time.Hour)}); err != nil {
					t.Fatal(err)
				}
				must[time.Time](t)(i.Rewind(ctx, "job", began.Add(time.Minute)))
			})
		})
	}
}

func TestLastAfterARewind(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		i, ctx := c.inspector(), t.Context()
		n := c.start("a", scheduler.Config{}, eachSecond("job", &sink{}))
		time.Sleep(8*time.Second + 500*time.Millisecond)
		c.leave(n)
		from := time.Time(*c.job("job").HistoryFrom)
		tick := must[time.Time](t)(i.Rewind(ctx, "job", from.Add(3*time.Second)))
		if v := c.job("job"); v.Last == nil || !time.Time(*v.Last).Equal(tick.Add(-time.Second)) {
			t.Errorf("set back to %s, the last tick is %v", scheduler.Stamp(tick), v.Last)
		}
		_, err := i.Rewind(ctx, "job", tick)
		refused(t, err, scheduler.ErrRefused, "stands at "+scheduler.Stamp(tick).String(), "only goes back")
		must[time.Time](t)(i.Rewind(ctx, "job", from))
		if v := c.job("job"); v.Last != nil {
			t.Errorf("set back to its beginning, the last tick is %v", v.Last)
		}
	})
}
