package scheduler_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestResults: what a run gives to SetResult is the payload of the jobs that follow: of one job the
// very bytes, of several an object.
func TestResults(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		extract := func(name string) jobs.Job {
			return jobs.Job{Name: name, Schedule: "@every 10s", Func: func(_ context.Context, run *jobs.Run) error {
				return run.SetResult(fmt.Appendf(nil, `{ "from": "%s", "at": %d }`, name, run.Tick().Unix()%100))
			}}
		}
		plain := jobs.Job{Name: "plain", Schedule: "@every 10s", Func: func(context.Context, *jobs.Run) error { return nil }}
		odd := extract("odd")
		odd.Func = func(_ context.Context, run *jobs.Run) error {
			if err := run.SetResult([]byte("{")); err == nil {
				return nil
			}
			if err := run.SetResult([]byte(`"` + strings.Repeat("x", jobs.MaxResult) + `"`)); err == nil {
				return nil
			}
			_ = run.SetResult([]byte(`1`))
			return errors.New("a failure has no result")
		}
		told := func(name string, when jobs.When, after ...string) jobs.Job {
			return jobs.Job{Name: name, After: after, When: when, Func: func(_ context.Context, run *jobs.Run) error {
				fmt.Fprintf(run.Output(), "%s", run.Payload())
				s.write(run)
				return nil
			}}
		}
		c.start("a", scheduler.Config{}, extract("one"), extract("two"), plain, odd,
			told("after-one", jobs.WhenSucceeded, "one"), told("after-plain", jobs.WhenSucceeded, "plain"), told("after-odd", jobs.WhenFailed, "odd"),
			told("after-both", jobs.WhenSucceeded, "two", "one"), told("after-some", jobs.WhenAny, "plain", "odd", "one"))
		time.Sleep(15 * time.Second)
		at := fmt.Sprint(s.ticks("after-one")[0].Unix() % 100)
		for name, want := range map[string]string{
			"after-one": `{"from":"one","at":` + at + `}`, "after-plain": "", "after-odd": "",
			"after-both": `{"two":{"from":"two","at":` + at + `},"one":{"from":"one","at":` + at + `}}`,
			"after-some": `{"one":{"from":"one","at":` + at + `}}`,
		} {
			runs := c.runs(name)
			if len(runs) == 0 {
				t.Errorf("%s did not run", name)
				continue
			}
			r := must[ops.RunView](t)(c.ops().GetRun(t.Context(), runs[0].Run))
			if r.Outcome != jobs.OutcomeSucceeded || r.Output != want {
				t.Errorf("%s: %s with the payload %q, want %q", name, r.Outcome, r.Output, want)
			}
		}
	})
}

// TestStoredFollowers: a stored job may follow stored jobs and jobs of a program, also several.
func TestStoredFollowers(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.handlers = report(s)
		c.start("a", scheduler.Config{}, jobs.Job{Name: "code", Schedule: "@every 2s", Func: func(_ context.Context, run *jobs.Run) error {
			if run.Tick().Unix()%4 == 0 {
				return errors.New("it broke")
			}
			return nil
		}})
		time.Sleep(time.Second)
		first, join, alert := tenant(1), tenant(2), tenant(3)
		first.Schedule = "@every 2s"
		join.Schedule, join.After = "", []string{"tenant-1", "code"}
		alert.Schedule, alert.After, alert.When = "", []string{"code"}, jobs.WhenFailed
		if _, err := c.ops().PutJobs(t.Context(), []jobs.Job{join, alert}, ops.PutOptions{}); !errors.Is(err, ops.ErrRefused) {
			t.Errorf("a join without its first job: %v", err)
		}
		must[[]ops.StoredJob](t)(c.ops().PutJobs(t.Context(), []jobs.Job{join, alert, first}, ops.PutOptions{}))
		time.Sleep(12 * time.Second)
		for name, rest := range map[string]int64{"tenant-2": 2, "tenant-3": 0} {
			ticks := s.ticks(name)
			if len(ticks) < 2 {
				t.Errorf("%s ran %d times", name, len(ticks))
			}
			for _, tick := range ticks {
				if tick.Unix()%4 != rest {
					t.Errorf("%s ran for %s", name, tick)
				}
			}
		}
		stored := must[[]ops.StoredJob](t)(c.ops().StoredJobs(t.Context(), "tenant-3"))[0]
		if text, err := json.Marshal(stored); err != nil || !strings.Contains(string(text), `"after":["code"],"when":"failed"`) {
			t.Errorf("shown as %s, %v", text, err)
		}
		// The follower of a join is not mistaken for a join, in whatever order the jobs are read.
		last := tenant(4)
		last.Schedule, last.After = "", []string{"tenant-2"}
		for range 30 {
			must[ops.StoredJob](t)(c.ops().PutJob(t.Context(), last, ops.PutOptions{DryRun: true}))
		}
		// A stored job's circle is refused across two calls.
		first.Schedule, first.After = "", []string{"tenant-2"}
		if _, err := c.ops().PutJob(t.Context(), first, ops.PutOptions{}); !errors.Is(err, ops.ErrRefused) || !strings.Contains(err.Error(), "in a circle") {
			t.Errorf("a circle: %v", err)
		}
		for _, name := range []string{"tenant-2", "tenant-3", "tenant-1"} {
			if err := c.ops().Delete(t.Context(), name, time.Time{}); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestJoinAfterALongOutage: each of millions of ticks that did not run reaches a job that follows
// several, however far Redis is: the newest by themselves, the older ones at once.
func TestJoinAfterALongOutage(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		list := []jobs.Job{eachSecond("one", &sink{}), eachSecond("two", &sink{}), {Name: "both", After: []string{"one", "two"}, Func: eachSecond("", &sink{}).Func}}
		list[0].CatchUp, list[1].CatchUp = jobs.CatchUpNone, jobs.CatchUpNone
		first := c.start("v1", scheduler.Config{Partitions: 1}, list...)
		time.Sleep(5 * time.Second)
		c.leave(first)
		time.Sleep(60 * 24 * time.Hour)
		var network redistest.Net
		network.Delay(30 * time.Millisecond)
		c.startOver(network.Client(server.Options()), "v2", scheduler.Config{Partitions: 1}, list...)
		time.Sleep(40 * time.Second)
		for _, e := range c.redis().ZRange(t.Context(), "{escapement:0}:outbox", 0, 0).Val() {
			if strings.Contains(e, "|missed|") {
				t.Errorf("the outbox keeps %s", e)
			}
		}
		one, two, both := c.job("one").Counts, c.job("two").Counts, c.job("both").Counts
		all, told := one[jobs.OutcomeMissed]+one[jobs.OutcomeSkipped]+one[jobs.OutcomeSucceeded], both[jobs.OutcomeSkipped]+both[jobs.OutcomeSucceeded]
		if least := max(one[jobs.OutcomeMissed], two[jobs.OutcomeMissed]); least < 5_000_000 || both[jobs.OutcomeSkipped] < least || told > all || told < all-5 { // some are under way
			t.Errorf("one %v, two %v, both %v", one, two, both)
		}
	})
}

// TestJoinIsGivenUp: a tick that one upstream has not ended when the history forgets the other's
// end is recorded as missed then, and not when another tick comes.
func TestJoinIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		job := func(name string, lasts time.Duration, after ...string) jobs.Job {
			j := jobs.Job{Name: name, TTL: time.Minute, After: after, Func: func(ctx context.Context, _ *jobs.Run) error {
				select {
				case <-time.After(lasts):
				case <-ctx.Done():
				}
				return context.Cause(ctx)
			}}
			if len(after) == 0 {
				j.Schedule = "0 0 1 * * *"
			}
			return j
		}
		time.Sleep(59 * time.Minute)
		c.start("a", scheduler.Config{HistoryKeepFor: 12 * time.Minute, Partitions: 1, DrainTimeout: time.Second}, job("short", 0), job("long", 9*time.Hour), job("both", 0, "short", "long"))
		for i, want := range []int64{0, 1} {
			time.Sleep(11 * time.Minute)
			if i == 1 {
				time.Sleep(5 * time.Minute)
			}
			if n := c.job("both").Counts[jobs.OutcomeMissed]; n != want {
				t.Errorf("%d are missed, want %d", n, want)
			}
		}
	})
}
