package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// TestRefusedGuardIsTold: the rows of skipped ticks, the run and the doctor name the refusal by the
// guard's store.
func TestRefusedGuardIsTold(t *testing.T) {
	for name, shards := range map[string]int{"one run": 0, "shards": 2} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
				client := server.Client()
				defer client.Close()
				locker := redislock.New(client, redislock.Config{Namespace: "guards"})
				defer locker.Close()
				keys := []string{"{guards:lock:job-0}", "{guards:lock:job-0/0}", "{guards:lock:job-0/1}"}
				for _, key := range keys {
					must[int64](t)(client.RPush(t.Context(), key, "not a lock").Result())
				}
				var a atOnce
				list := limited(1, 1, a.work(time.Second))
				list[0].Limit, list[0].Guard, list[0].Shards = jobs.Limit{}, "other", shards
				c.start("a", scheduler.Config{Guards: map[string]*locking.Locker{"other": locker}}, list...)
				time.Sleep(45 * time.Second)
				const want = "waits for the guard other: "
				var skipped, running int
				for _, r := range c.runs("job-0") {
					switch {
					case r.Outcome == jobs.OutcomeSkipped && strings.HasPrefix(r.Note, want):
						skipped++
					case r.Outcome == jobs.OutcomeSkipped:
						t.Errorf("skipped without a reason: %+v", r)
					case !r.Whole && strings.HasPrefix(r.Reason, want) && r.Progress == nil:
						running++
					}
				}
				if skipped != 1 || running != max(1, shards) {
					t.Errorf("%d rows and %d runs say why: %+v", skipped, running, c.runs("job-0"))
				}
				if got := found(t, c, "run_refused"); len(got) != max(1, shards) || !strings.Contains(got[0].Text, want) || !strings.Contains(got[0].Cure, "`runs cancel ") {
					t.Errorf("found %+v", got)
				}
				must[int64](t)(client.Del(t.Context(), keys...).Result())
				time.Sleep(7 * time.Second)
				for _, r := range c.runs("job-0") {
					if r.Outcome == jobs.OutcomeRunning && strings.Contains(r.Reason, want) {
						t.Errorf("it waits no more: %+v", r)
					}
				}
				if got := found(t, c, "run_refused"); len(got) > 0 {
					t.Errorf("found %+v", got)
				}
			})
		})
	}
}

// TestWaitForPermitIsTold: a tick that was missed or skipped while a run waited for a permit has
// that reason. Another holder is no problem.
func TestWaitForPermitIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		client := server.Client()
		defer client.Close()
		locker := redislock.New(client, redislock.Config{})
		defer locker.Close()
		held := must[*locking.Lease](t)(locker.Acquire(t.Context(), "limit:db", locking.Options{}))
		var a atOnce
		list := limited(2, 1, a.work(time.Second))
		list[1].StartWithin = 8 * time.Second
		c.start("a", scheduler.Config{}, list...)
		time.Sleep(45 * time.Second)
		const want = "waits for one of the 1 permits of db"
		told := make(map[string]int)
		for _, r := range append(c.runs("job-0"), c.runs("job-1")...) {
			if r.Count != nil && r.Note == want {
				told[r.Outcome.String()+" "+r.Reason] += int(*r.Count)
			}
		}
		if told["skipped overlap"] < 3 || told["missed start_within"] < 3 {
			t.Errorf("told: %v: %+v", told, append(c.runs("job-0"), c.runs("job-1")...))
		}
		if got := found(t, c, "run_refused"); len(got) > 0 {
			t.Errorf("found %+v", got)
		}
		free(t, held)
	})
}

// found are the problems of a code.
func found(t *testing.T, c *cluster, code string) (some []ops.Problem) {
	t.Helper()
	for _, p := range must[[]ops.Problem](t)(c.ops().Problems(t.Context())) {
		if p.Code == code {
			some = append(some, p)
		}
	}
	return some
}
