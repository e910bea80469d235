package scheduler_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
)

func TestRemove(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		ctx, i, s := t.Context(), c.inspector(), &sink{}
		long := jobs.Job{Name: "long", Schedule: "@every 1m", TTL: 30 * time.Second, Func: func(ctx context.Context, _ *jobs.Run) error {
			<-ctx.Done()
			return nil
		}}
		follower := jobs.Job{Name: "follower", After: "long", Func: long.Func}
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "doomed", scheduler.Config{DrainTimeout: time.Second}, long, follower)
		other := eachSecond("other", s)
		c.start("b", scheduler.Config{}, other)
		time.Sleep(61 * time.Second)
		refused(t, i.Remove(ctx, "long"), scheduler.ErrRefused, "held by doomed")
		refused(t, i.Remove(ctx, "nope"), scheduler.ErrUnknownJob, "nope")
		if v := must[scheduler.JobView](t)(i.Job(ctx, "long")); v.Orphan || v.Owner != "doomed" || v.Open == "" {
			t.Errorf("while it is held: %+v", v)
		}
		network.Cut()
		time.Sleep(10 * time.Second)
		if v := must[scheduler.JobView](t)(i.Job(ctx, "long")); !v.Orphan || v.Owner != "" {
			t.Errorf("when nobody holds it: %+v", v)
		}
		refused(t, i.Remove(ctx, "long"), scheduler.ErrRefused, "in flight")
		if v := must[scheduler.JobView](t)(i.Job(ctx, "other")); v.Orphan {
			t.Errorf("of another node: %+v", v)
		}
		time.Sleep(40 * time.Second)
		if got := outcomes(c.runs("long")); got["abandoned(lease lapsed)"] != 1 {
			t.Fatalf("history %v", got)
		}
		if v := must[scheduler.JobView](t)(i.Job(ctx, "follower")); v.After != "long" || v.Schedule != "" || v.Next != nil || v.HistoryFrom != nil {
			t.Errorf("a job that follows: %+v", v)
		}
		for _, name := range []string{"follower", "long"} {
			if err := i.Remove(ctx, name); err != nil {
				t.Fatal(err)
			}
			_, err := i.Job(ctx, name)
			refused(t, err, scheduler.ErrUnknownJob, name)
			for _, key := range server.Mini().Keys() { // nobody waits for word of its ticks any more
				if strings.HasSuffix(key, ":followers") {
					t.Errorf("after %s was removed there is still %s", name, key)
				}
			}
		}
		for _, key := range server.Mini().Keys() {
			values, err := server.Mini().HKeys(key)
			if err != nil {
				continue // no hash
			}
			for _, field := range values {
				if field == "long" || field == "follower" {
					t.Errorf("%s still has %s", key, field)
				}
			}
		}
		if list := must[[]scheduler.JobView](t)(i.Jobs(ctx)); len(list) != 1 || list[0].Name != "other" {
			t.Errorf("left are %+v", list)
		}
		network.Heal()
		time.Sleep(10 * time.Second)
	})
}

func TestRemoveBesideANewerNode(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		ctx, i, s := t.Context(), c.inspector(), &sink{}
		job := eachSecond("job", s)
		job.Labels = map[string]string{"disk": "fast"}
		n := c.start("a", scheduler.Config{}, job)
		time.Sleep(3 * time.Second)
		if v := must[scheduler.JobView](t)(i.Job(ctx, "job")); v.Orphan || v.Owner != "" {
			t.Errorf("held by a node without its labels: %+v", v)
		}
		c.leave(n)
		client := server.Client()
		defer client.Close()
		newer := `{"v":99,"id":"newer","set":{"of":"another kind"}}`
		if err := errors.Join(client.HSet(ctx, "{escapement}:roster", "newer", newer).Err(),
			client.ZAdd(ctx, "{escapement}:seen", redisZ(float64(time.Now().UnixMilli()), "newer")).Err()); err != nil {
			t.Fatal(err)
		}
		refused(t, i.Remove(ctx, "job"), scheduler.ErrRefused, "what 1 of the living nodes hold cannot be read")
		if err := errors.Join(client.HDel(ctx, "{escapement}:roster", "newer").Err(), client.ZRem(ctx, "{escapement}:seen", "newer").Err()); err != nil {
			t.Fatal(err)
		}
		if err := i.Remove(ctx, "job"); err != nil {
			t.Error(err)
		}
	})
}

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
		if from := must[scheduler.JobView](t)(i.Job(ctx, "job")).HistoryFrom; !time.Time(*from).Equal(began.Add(time.Minute)) {
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

// slow makes what an inspector reads old before it acts on it.
type slow struct {
	redis.Hook
	left int
}

func (s *slow) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *slow) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (s *slow) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if cmds[0].Name() == "time" && s.left != 0 {
			s.left--
			time.Sleep(1100 * time.Millisecond)
		}
		return next(ctx, cmds)
	}
}

func TestRewindOfACursorThatMoves(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		ctx, s := t.Context(), &sink{}
		c.start("a", scheduler.Config{}, eachSecond("job", s))
		time.Sleep(20*time.Second + 500*time.Millisecond)
		client, hook := server.Client(), &slow{left: 2}
		defer client.Close()
		client.AddHook(hook)
		i, err := scheduler.NewInspector(client, "")
		if err != nil {
			t.Fatal(err)
		}
		to := time.Now().Add(-5 * time.Second).Truncate(time.Second)
		if tick := must[time.Time](t)(i.Rewind(ctx, "job", to)); !tick.Equal(to) || hook.left != 0 {
			t.Errorf("begins with %s, %d delays left", tick, hook.left)
		}
		time.Sleep(5*time.Second + 300*time.Millisecond)
		hook.left = -1 // always
		_, err = i.Rewind(ctx, "job", to)
		refused(t, err, scheduler.ErrRefused, "pause the job first")
	})
}
