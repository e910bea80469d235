package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// hourly is a job that ticks each hour and works for a while.
func hourly(name string, s *sink, lasts time.Duration) jobs.Job {
	return jobs.Job{
		Name: name, Schedule: "@hourly", TTL: 5 * time.Second, OnCrash: jobs.OnCrashRerun, RerunMax: 3,
		Func: func(ctx context.Context, r *jobs.Run) error {
			select {
			case <-time.After(lasts):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			s.write(r)
			return nil
		},
	}
}

// filled are the ticks that runs of a backfill have written, in order of writing.
func (s *sink) filled(job string) (ticks []time.Time) {
	for _, r := range s.all() {
		if r.job == job && r.trigger == jobs.TriggerBackfill {
			ticks = append(ticks, r.tick)
		}
	}
	return ticks
}

// backfill reads the only backfill of a job.
func (c *cluster) backfill(job string) ops.BackfillView {
	c.t.Helper()
	all := must[[]ops.BackfillView](c.t)(c.ops().ListBackfills(context.Background(), job))
	if len(all) != 1 {
		c.t.Fatalf("backfills of %s: %+v", job, all)
	}
	return all[0]
}

// finish waits for the end of a job's only backfill.
func (c *cluster) finish(job string) ops.BackfillView {
	c.t.Helper()
	for range 10_000 {
		if v := c.backfill(job); !v.End.IsZero() {
			return v
		}
		time.Sleep(200 * time.Millisecond)
	}
	c.t.Fatalf("the backfill does not end: %+v", c.backfill(job))
	return ops.BackfillView{}
}

// hours are the n instants from an hour on.
func hours(from time.Time, n int) (ticks []time.Time) {
	for i := range n {
		ticks = append(ticks, from.Add(time.Duration(i)*time.Hour))
	}
	return ticks
}

// A backfill of 200 ticks goes on over the death of the node that takes it on.
func TestBackfillOutlivesItsNode(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		c.backfillOutlivesItsNode(server.Options(), 200)
	})
}

// The same over a real server, with fewer ticks.
func TestBackfillOutlivesItsNodeOnRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c := &cluster{t: t, logs: &logs{}, client: func() *redis.Client { return redis.NewClient(redistest.ClientOptions(server.Addr())) }}
	c.backfillOutlivesItsNode(redistest.ClientOptions(server.Addr()), 60)
}

// backfillOutlivesItsNode cuts the node off, of three, that runs a backfill of n ticks, in the
// middle of a run: each tick is done once, in order, and the job's cursor does not move.
func (c *cluster) backfillOutlivesItsNode(o *redis.Options, n int) {
	t, s := c.t, &sink{}
	networks := make([]redistest.Net, 3)
	last := time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Hour)
	var ticks []time.Time
	for i := range n {
		ticks = append(ticks, last.AddDate(0, 0, i+1-n))
	}
	works := make(chan string)
	report := hourly("report", s, 0)
	report.Schedule = fmt.Sprintf("0 %d * * *", last.Hour()) // no tick of its own comes between
	report.Func = func(ctx context.Context, r *jobs.Run) error {
		if r.Tick().Equal(ticks[n/3]) && r.Attempt() == 1 {
			works <- r.Node()
			<-ctx.Done()
			return context.Cause(ctx)
		}
		s.write(r)
		return nil
	}
	for i := range networks {
		c.startOver(networks[i].Client(o), fmt.Sprint("n", i), scheduler.Config{DrainTimeout: time.Second}, report)
	}
	for _, node := range c.nodes {
		for node.Ready() != nil {
			<-time.After(10 * time.Millisecond)
		}
	}
	before := c.job("report").Next
	plan := must[ops.BackfillPlan](t)(c.ops().Backfill(t.Context(), "report", ops.BackfillOptions{From: ticks[0], To: ticks[n-1], Author: "ann"}))
	owner := <-works
	networks[owner[1]-'0'].Cut()
	v := c.finish("report")
	if v.ID != plan.ID || v.State != "done" || v.Ticks != int64(n) || v.Counts[jobs.OutcomeSucceeded] != int64(n) || v.Author != "ann" {
		t.Errorf("at the end: %+v", v)
	}
	if got := s.filled("report"); !slices.EqualFunc(got, ticks, time.Time.Equal) {
		t.Errorf("%d ticks were done, not each once and in order: %v", len(got), got)
	}
	if runs := s.all(); runs[len(runs)-1].node == owner {
		t.Errorf("%s ends it, and is cut off", owner)
	}
	if after := c.job("report").Next; !after.Equal(before) {
		t.Errorf("the cursor was at %v, and is at %v", before, after)
	}
	for i := range networks {
		networks[i].Heal()
	}
	c.end()
	s.check(t)
}

// A backfill puts as many runs in as it may at a time, beside the ticks of the job itself, which
// are not skipped for it.
func TestBackfillBesideTheSchedule(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s, most, now := &sink{}, 0, 0
		slow := eachSecond("job", s)
		slow.Overlap = jobs.OverlapSkip
		slow.Func = func(_ context.Context, r *jobs.Run) error {
			s.mu.Lock()
			backfill := r.Trigger() == jobs.TriggerBackfill
			if backfill {
				now++
				most = max(most, now)
			}
			s.mu.Unlock()
			if backfill {
				time.Sleep(1500 * time.Millisecond)
			}
			s.mu.Lock()
			if backfill {
				now--
			}
			s.mu.Unlock()
			s.write(r)
			return nil
		}
		c.start("a", scheduler.Config{}, slow)
		time.Sleep(2 * time.Second)
		began := time.Now()
		from := began.Truncate(time.Second).Add(-time.Hour)
		o := ops.BackfillOptions{From: from, To: from.Add(29 * time.Second), Parallel: 4}
		must[ops.BackfillPlan](t)(c.ops().Backfill(t.Context(), "job", o))
		v := c.finish("job")
		time.Sleep(2 * time.Second)
		if most != 4 || v.Counts[jobs.OutcomeSucceeded] != 30 {
			t.Errorf("%d runs at a time, and at the end %+v", most, v)
		}
		var own int
		for _, r := range s.all() {
			if r.trigger == jobs.TriggerSchedule && r.tick.After(began) {
				own++
			}
		}
		if lasted := int(time.Since(began) / time.Second); own < lasted-1 || outcomes(c.runs("job"))["skipped(overlap)"] > 0 {
			t.Errorf("%d ticks of its own in %d s: %v", own, lasted, outcomes(c.runs("job")))
		}
		c.end()
	})
}

// A backfill waits while its job is paused, and runs that are pending then wait too.
func TestBackfillWaitsForThePause(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.start("a", scheduler.Config{}, hourly("report", s, 100*time.Millisecond))
		time.Sleep(time.Second)
		from := time.Now().UTC().Truncate(time.Hour).Add(-100 * time.Hour)
		must[ops.BackfillPlan](t)(c.ops().Backfill(t.Context(), "report", ops.BackfillOptions{From: from, To: from.Add(49 * time.Hour), Parallel: 2}))
		for len(s.filled("report")) < 10 {
			time.Sleep(50 * time.Millisecond)
		}
		if err := c.ops().Pause(t.Context(), "report", ops.PauseOptions{Reason: "the database is being moved"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond) // runs in flight end
		done := len(s.filled("report"))
		time.Sleep(time.Minute)
		if now := len(s.filled("report")); now != done || done >= 50 {
			t.Errorf("%d ticks were done when the job was paused, %d a minute later", done, now)
		}
		if err := c.ops().Resume(t.Context(), "report"); err != nil {
			t.Fatal(err)
		}
		if v := c.finish("report"); v.Counts[jobs.OutcomeSucceeded] != 50 || len(s.filled("report")) != 50 {
			t.Errorf("at the end: %+v, and %d ticks were done", v, len(s.filled("report")))
		}
		c.end()
	})
}

// Cancelling a backfill cancels its running runs, records its pending runs as cancelled, and starts
// no further tick.
func TestBackfillIsCancelled(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.start("a", scheduler.Config{MaxRunning: 2}, hourly("report", s, time.Hour))
		time.Sleep(time.Second)
		from := time.Now().UTC().Truncate(time.Hour).Add(-100 * time.Hour)
		refused(t, second(c.ops().CancelBackfill(t.Context(), "report", ops.CancelOptions{})), ops.ErrRefused, "none is under way")
		plan := must[ops.BackfillPlan](t)(c.ops().Backfill(t.Context(), "report", ops.BackfillOptions{From: from, To: from.Add(49 * time.Hour), Parallel: 5}))
		time.Sleep(3 * time.Second)
		_, err := c.ops().Backfill(t.Context(), "report", ops.BackfillOptions{From: from, To: from})
		refused(t, err, ops.ErrRefused, plan.ID, "backfill-cancel report")
		v := must[ops.BackfillView](t)(c.ops().CancelBackfill(t.Context(), "report", ops.CancelOptions{Author: "bob", Reason: "wrong range"}))
		if v.State != "cancelled" || v.Running != 5 || !v.Next.IsZero() {
			t.Errorf("when it is cancelled: %+v", v)
		}
		if v = c.finish("report"); v.State != "cancelled" || v.Counts[jobs.OutcomeCancelled] != 5 || v.Ended != 5 || v.By != "bob" || v.Reason != "wrong range" {
			t.Errorf("at the end: %+v", v)
		}
		for _, r := range c.runs("report") {
			if r.Trigger == "backfill" && (r.Outcome != jobs.OutcomeCancelled || r.Reason != "cancelled by bob: wrong range") {
				t.Errorf("a run of it: %+v", r)
			}
		}
		time.Sleep(10 * time.Second)
		if n := len(c.runs("report")); n != 5 || len(s.all()) > 0 {
			t.Errorf("%d runs, of which %d did anything", n, len(s.all()))
		}
		c.end()
	})
}

// An invalid backfill is refused with the field and a cure, and nothing is stored.
func TestBackfillIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		follower := eachSecond("follower", s)
		follower.Schedule, follower.After = "", []string{"report"}
		c.start("a", scheduler.Config{}, hourly("report", s, 0), eachSecond("busy", s), follower)
		time.Sleep(time.Second)
		now := time.Now().UTC().Truncate(time.Hour)
		for _, b := range []struct {
			job         string
			from, to    time.Time
			parallel    int
			kind        error
			words, cure string
		}{
			{"report", now, now.Add(-time.Hour), 1, ops.ErrRefused, "from is", "give the earlier end as from"},
			{"report", time.Time{}, now, 1, ops.ErrRefused, "from is missing", "both ends"},
			{"report", now, time.Time{}, 1, ops.ErrRefused, "to is missing", "both ends"},
			{"report", now.Add(-time.Hour), now.Add(time.Hour), 1, ops.ErrRefused, "to is", "an instant that is over"},
			{"report", now.Add(-50 * time.Minute), now.Add(-10 * time.Minute), 1, ops.ErrRefused, "no tick from", "jobs get report"},
			{"busy", now.Add(-3 * time.Hour), now, 1, ops.ErrRefused, "10801 ticks", "at most 10000, so split the range"},
			{"report", now.Add(-time.Hour), now, 101, ops.ErrRefused, "parallel is 101", "from 1 to 100"},
			{"report", now.Add(-time.Hour), now, -1, ops.ErrRefused, "parallel is -1", "from 1 to 100"},
			{"nobody", now.Add(-time.Hour), now, 1, ops.ErrUnknownJob, "nobody", "jobs list"},
			{"follower", now.Add(-time.Hour), now, 1, ops.ErrRefused, "it follows report", "jobs run"},
		} {
			for _, dry := range []bool{true, false} {
				_, err := c.ops().Backfill(t.Context(), b.job, ops.BackfillOptions{From: b.from, To: b.to, Parallel: b.parallel, DryRun: dry})
				refused(t, err, b.kind, b.words, b.cure)
			}
		}
		plan := must[ops.BackfillPlan](t)(c.ops().Backfill(t.Context(), "report", ops.BackfillOptions{From: now.Add(-99 * time.Hour), To: now, DryRun: true}))
		if got := fmt.Sprint(plan); got != fmt.Sprint(ops.BackfillPlan{Ticks: 100, First: hours(now.Add(-99*time.Hour), 3), Last: hours(now.Add(-2*time.Hour), 3)}) {
			t.Errorf("the plan: %s", got)
		}
		for n := int64(1); n <= 7; n++ {
			plan := must[ops.BackfillPlan](t)(c.ops().Backfill(t.Context(), "report", ops.BackfillOptions{From: now.Add(-time.Duration(n-1) * time.Hour), To: now, DryRun: true}))
			if shown := int64(len(plan.First) + len(plan.Last)); plan.Ticks != n || shown != min(n, 6) || n > 3 && plan.Last[len(plan.Last)-1] != now {
				t.Errorf("of %d ticks the plan shows %+v", n, plan)
			}
		}
		if all := must[[]ops.BackfillView](t)(c.ops().ListBackfills(t.Context(), "")); len(all) > 0 || len(s.filled("report"))+len(s.filled("busy")) > 0 {
			t.Errorf("stored are %+v", all)
		}
		if _, err := c.ops().ListBackfills(t.Context(), "nobody"); !errors.Is(err, ops.ErrUnknownJob) {
			t.Errorf("of a job that is not there: %v", err)
		}
		c.end()
	})
}

// A backfill that no node can take on is logged once, with the reason, and does not block another
// backfill.
func TestBackfillThatIsNotTakenOn(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.start("a", scheduler.Config{Partitions: 1}, hourly("broken", s, 0), hourly("report", s, 0), hourly("other", s, 0))
		time.Sleep(time.Second)
		history := "{escapement:0}:history:broken"
		c.redis().Set(t.Context(), history, "no list", 0)
		current := c.redis().HGet(t.Context(), "{escapement:0}:jobs", "other").Val()
		from := time.Now().UTC().Truncate(time.Hour).Add(-20 * time.Hour)
		for _, name := range []string{"broken", "other", "report"} {
			must[ops.BackfillPlan](t)(c.ops().Backfill(t.Context(), name, ops.BackfillOptions{From: from, To: from.Add(9 * time.Hour)}))
		}
		fields := strings.Split(current, "|")
		fields[2] = "another"
		c.redis().HSet(t.Context(), "{escapement:0}:jobs", "other", strings.Join(fields, "|"))
		if v := c.finish("report"); v.Counts[jobs.OutcomeSucceeded] != 10 {
			t.Errorf("beside those: %+v", v)
		}
		time.Sleep(3 * time.Minute)
		for what, want := range map[string]int{`not taken on" node=a job=broken`: 1, "history cannot be read": 1, `not taken on" node=a job=other`: 1, "is not this node's": 1} {
			if n := c.logs.count(what); n != want {
				t.Errorf("%q is logged %d times, want %d", what, n, want)
			}
		}
		c.redis().Del(t.Context(), history)
		c.redis().HSet(t.Context(), "{escapement:0}:jobs", "other", current)
		for _, name := range []string{"broken", "other"} {
			if v := c.finish(name); v.Counts[jobs.OutcomeSucceeded] != 10 {
				t.Errorf("%s later: %+v", name, v)
			}
		}
	})
}

// Many backfills where Redis is far take turns, and leave the sweep its time.
func TestManyBackfillsTakeTurns(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		var network redistest.Net
		network.Delay(100 * time.Millisecond)
		s := &sink{}
		var list []jobs.Job
		for i := range 40 {
			list = append(list, hourly(fmt.Sprintf("job-%02d", i), s, 0))
		}
		c.startOver(network.Client(server.Options()), "a", scheduler.Config{Partitions: 1}, list...)
		time.Sleep(20 * time.Second)
		from := time.Now().UTC().Truncate(time.Hour).Add(-20 * time.Hour)
		for _, j := range list {
			must[ops.BackfillPlan](t)(c.ops().Backfill(t.Context(), j.Name, ops.BackfillOptions{From: from, To: from.Add(2 * time.Hour)}))
		}
		time.Sleep(30 * time.Second)
		for _, j := range list {
			if len(s.filled(j.Name)) == 0 {
				t.Errorf("no tick of the backfill of %s has run", j.Name)
			}
		}
		for _, j := range list {
			if v := c.finish(j.Name); v.Counts[jobs.OutcomeSucceeded] != 3 {
				t.Errorf("at the end: %+v", v)
			}
		}
		if n := c.logs.count("does not answer"); n > 0 {
			t.Errorf("a sweep had no time, %d times", n)
		}
	})
}

// The contexts of a cancelled backfill's runs are cancelled now and then, not with each sweep.
func TestBackfillIsCancelledOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, redis *redistest.Embedded) {
		stubborn := hourly("report", &sink{}, 0)
		stubborn.Func = func(context.Context, *jobs.Run) error {
			time.Sleep(time.Minute)
			return nil
		}
		c.start("a", scheduler.Config{Partitions: 1}, stubborn)
		time.Sleep(time.Second)
		from := time.Now().UTC().Truncate(time.Hour).Add(-20 * time.Hour)
		must[ops.BackfillPlan](t)(c.ops().Backfill(t.Context(), "report", ops.BackfillOptions{From: from, To: from.Add(9 * time.Hour), Parallel: 3}))
		time.Sleep(3 * time.Second)
		must[ops.BackfillView](t)(c.ops().CancelBackfill(t.Context(), "report", ops.CancelOptions{Author: "bob", Reason: "wrong range"}))
		var told atomic.Int64
		redis.SetHook(func(_ *server.Peer, cmd string, args ...string) bool {
			if strings.HasPrefix(cmd, "EVAL") && strings.Contains(strings.Join(args, " "), `"reason":"wrong range"`) {
				told.Add(1)
			}
			return false
		})
		time.Sleep(30 * time.Second)
		redis.SetHook(nil)
		if n := told.Load(); n < 3 || n > 3*7 {
			t.Errorf("three runs were told %d times in 30 s", n)
		}
		if v := c.finish("report"); v.State != "cancelled" || v.Ended != 3 {
			t.Errorf("at the end: %+v", v)
		}
	})
}
