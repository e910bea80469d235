package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ops"
)

// accounted checks that each tick from an instant up to another, of a job that is due each second,
// has one run in the sink, or a row with the reason why it did not run.
func (c *cluster) accounted(s *sink, job string, from, to time.Time) {
	c.t.Helper()
	ran := make(map[int64]int)
	for _, tick := range s.ticks(job) {
		ran[tick.UnixMilli()]++
	}
	rows := c.runs(job)
	for at := from.Add(time.Second - 1).Truncate(time.Second); at.Before(to); at = at.Add(time.Second) {
		n := ran[at.UnixMilli()]
		for _, r := range rows {
			if n == 0 && !r.Until.IsZero() && !r.Mark() && !r.Tick.After(at) && !r.Until.Before(at) {
				n++
			}
		}
		if n != 1 {
			c.t.Errorf("%s at %s: %d times", job, at.Format(time.TimeOnly), n)
		}
	}
}

// toldLost is how many rows of the audit name a loss.
func (c *cluster) toldLost() (rows int) {
	c.t.Helper()
	for _, a := range must[ops.Page[ops.ActionView]](c.t)(c.ops().Audit(c.t.Context(), ops.ActionFilter{})).Items {
		if a.Action == "records lost" {
			rows++
		}
	}
	return rows
}

// alone is a job that works for some time, and fails the test when two of its runs overlap.
func alone(t *testing.T, job jobs.Job, lasts time.Duration) jobs.Job {
	var busy sync.Mutex
	inner := job.Func
	job.Func = func(ctx context.Context, r *jobs.Run) error {
		if !busy.TryLock() {
			t.Errorf("%s at %s runs beside another run", r.Job(), r.Tick().Format(time.TimeOnly))
			return nil
		}
		defer busy.Unlock()
		if inner != nil {
			_ = inner(ctx, r)
		}
		select {
		case <-time.After(lasts):
		case <-ctx.Done():
		}
		return context.Cause(ctx)
	}
	return job
}

// Single keys of a partition are deleted under two nodes. What stood in them is stored again within
// seconds, each tick runs once or has a row, and no run goes beside another one of its job.
func TestKeysDeleted(t *testing.T) {
	for _, key := range []string{"jobs", "defs", "due", "runs", "leases", "gate", "incarnation"} {
		t.Run(key, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				s := &sink{}
				list := []jobs.Job{alone(t, eachSecond("quick", s), 300*time.Millisecond)}
				list = append(list, alone(t, jobs.Job{Name: "long", Schedule: "*/4 * * * * *", TTL: 5 * time.Second}, 3*time.Second))
				for _, name := range []string{"slow-1", "slow-2"} { // claimed in one batch, while they run
					list = append(list, alone(t, eachSecond(name, s), 2500*time.Millisecond))
				}
				for _, name := range []string{"a", "b"} {
					c.start(name, scheduler.Config{Partitions: 1}, list...)
				}
				client := c.redis()
				time.Sleep(10 * time.Second)
				from := time.Now()
				for range 5 {
					time.Sleep(7300 * time.Millisecond)
					client.Del(t.Context(), "{escapement:0}:"+key)
					time.Sleep(2 * time.Second)
					if client.Exists(t.Context(), "{escapement:0}:"+key).Val() == 0 && key != "runs" && key != "leases" {
						t.Errorf("%s is not there 2 s later", key)
					}
				}
				time.Sleep(5 * time.Second)
				s.check(t)
				for _, job := range []string{"quick", "slow-1", "slow-2"} {
					c.accounted(s, job, from, time.Now().Add(-4*time.Second))
				}
			})
		})
	}
}

// Redis is emptied while it runs, again and again: no tick runs twice, and each has a run or a row
// afterwards.
func TestFlushedAgainAndAgain(t *testing.T) {
	for name, c := range map[string]struct {
		every time.Duration
		times int
	}{
		"each 150 ms":            {150 * time.Millisecond, 27},
		"a moment before a tick": {2940 * time.Millisecond, 12}, // 60 ms earlier each time
		"just before each third": {3 * time.Second, 10},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, cl *cluster, _ *redistest.Embedded) {
				s := &sink{}
				for _, node := range []string{"a", "b", "c"} {
					cl.start(node, scheduler.Config{Partitions: 1}, many(8, s)...)
				}
				client := cl.redis()
				time.Sleep(10 * time.Second)
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1950 * time.Millisecond)))
				for range c.times {
					client.FlushAll(t.Context())
					time.Sleep(c.every)
				}
				last := time.Now()
				time.Sleep(15 * time.Second)
				s.check(t)
				for i := range 8 {
					cl.accounted(s, fmt.Sprintf("job-%02d", i), last.Add(5*time.Second), time.Now().Add(-2*time.Second))
				}
			})
		})
	}
}

// A backfill is under way when Redis is emptied, or its record is deleted. It goes on where it was:
// each of its ticks runs, and none twice.
func TestBackfillOutlivesAnEmptiedRedis(t *testing.T) {
	for name, lost := range map[string]struct {
		nodes int
		keys  []string // none: all
	}{
		"1 nodes": {1, nil}, "3 nodes": {3, nil}, "its record": {3, []string{"{escapement:0}:backfills"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				const n = 150
				s := &sink{}
				for i := range lost.nodes { // with one node, two of three runs wait
					c.start(fmt.Sprint("node-", i), scheduler.Config{Partitions: 1, MaxRunning: 1}, hourly("hourly", s, 200*time.Millisecond))
				}
				time.Sleep(5 * time.Second)
				from := time.Now().UTC().Truncate(time.Hour).Add(-200 * time.Hour)
				ticks := hours(from, n)
				if _, err := c.ops().Backfill(t.Context(), "hourly", ops.BackfillOptions{From: from, To: ticks[n-1], Parallel: 3}); err != nil {
					t.Fatal(err)
				}
				for len(s.filled("hourly")) < 47 {
					time.Sleep(10 * time.Millisecond)
				}
				if lost.keys == nil {
					c.redis().FlushAll(t.Context())
				} else {
					c.redis().Del(t.Context(), lost.keys...)
				}
				time.Sleep(5 * time.Second)
				c.finish("hourly")
				ran := s.filled("hourly")
				slices.SortFunc(ran, time.Time.Compare)
				if !slices.EqualFunc(ran, ticks, time.Time.Equal) {
					t.Errorf("%d runs, want each of %d ticks once", len(ran), n)
				}
			})
		})
	}
}

// Redis is emptied several times in a row, so that epochs live shorter than the hold: no tick
// vanishes, and none runs twice. One node records the loss, once.
func TestEmptiedInARow(t *testing.T) {
	for offset := range 7 {
		t.Run(fmt.Sprint(offset*100, " ms"), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				s := &sink{}
				list := many(8, s)
				for _, node := range []string{"a", "b", "c"} {
					c.start(node, scheduler.Config{Partitions: 1}, list...)
				}
				time.Sleep(10*time.Second + time.Duration(offset)*100*time.Millisecond)
				from := time.Now().Add(-3 * time.Second)
				for range 6 {
					if err := c.redis().FlushAll(t.Context()).Err(); err != nil {
						t.Fatal(err)
					}
					time.Sleep(700 * time.Millisecond)
				}
				time.Sleep(8 * time.Second)
				s.check(t)
				s.each(t, list, from, time.Now().Add(-2*time.Second))
				// The audit of the epochs before is lost with them. An epoch that was never open
				// has no audit row.
				told, logged := c.toldLost(), c.logs.count("Redis had lost records")
				if told != 1 || logged < 1 || logged > 6 {
					t.Errorf("what is lost stands in %d audit rows and %d log lines, want one and up to one for each time", told, logged)
				}
			})
		})
	}
}

// A job that has had all its ticks leaves a partition without a next tick, which is not a loss.
func TestEndedJobIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		job := eachSecond("few", s)
		job.MaxRuns = 3
		for _, node := range []string{"a", "b"} {
			c.start(node, scheduler.Config{Partitions: 1}, job)
		}
		time.Sleep(10 * time.Second)
		if lost := c.toldLost(); lost != 0 || len(s.all()) != 3 || c.logs.count("has lost records") > 0 {
			t.Errorf("%d runs, %d losses in the audit", len(s.all()), lost)
		}
	})
}

// Redis has a lease whose run no node has. All nodes log one loss, a later node too; and another
// loss when the lease comes back.
func TestLackIsOneLoss(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		start := func(node string) { c.start(node, scheduler.Config{Partitions: 1}, eachSecond("quick", s)) }
		start("a")
		start("b")
		time.Sleep(10 * time.Second)
		from, leases := time.Now(), "{escapement:0}:leases"
		for _, node := range []string{"c", "d"} {
			c.redis().ZAdd(t.Context(), leases, redis.Z{Score: float64(from.Add(time.Hour).UnixMilli()), Member: "nobody's"})
			time.Sleep(5 * time.Second)
			start(node)
			time.Sleep(5 * time.Second)
			c.redis().ZRem(t.Context(), leases, "nobody's")
			time.Sleep(2 * time.Second)
		}
		if lost, logged := c.toldLost(), c.logs.count("Redis has lost records"); lost != 2 || logged != 2 {
			t.Errorf("%d losses in the audit, %d in the log", lost, logged)
		}
		c.accounted(s, "quick", from, time.Now().Add(-4*time.Second))
	})
}

// A run that cannot begin on a machine is handed back in the instant in which Redis is emptied. It
// runs later, once, whether it is a manual run, which no cursor covers, or a tick.
func TestHandBackToAnEmptiedRedis(t *testing.T) {
	for _, trigger := range []jobs.Trigger{jobs.TriggerManual, jobs.TriggerSchedule} {
		t.Run(trigger.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
				s := &sink{}
				var once sync.Once
				job := jobs.Job{Name: "back", Schedule: "*/10 * * * * *", TTL: 5 * time.Second, Func: func(ctx context.Context, r *jobs.Run) (err error) {
					if r.Trigger() == trigger {
						once.Do(func() {
							c.redis().FlushAll(ctx)
							err = jobs.NodeFault(errors.New("no memory"))
						})
					}
					if err == nil {
						s.write(r)
					}
					return err
				}}
				for _, node := range []string{"a", "b"} {
					c.start(node, scheduler.Config{Partitions: 1}, job)
				}
				time.Sleep(5 * time.Second)
				want := map[jobs.Trigger]int{jobs.TriggerSchedule: 2}
				if trigger == jobs.TriggerManual {
					want[trigger] = 1
					must[string](t)(c.ops().Trigger(t.Context(), "back", ops.TriggerOptions{}))
				}
				time.Sleep(20 * time.Second)
				s.check(t)
				got := make(map[jobs.Trigger]int)
				for _, r := range s.all() {
					got[r.trigger]++
				}
				if !maps.Equal(got, want) {
					t.Errorf("ran %v, want %v", got, want)
				}
			})
		})
	}
}

// A gate in an unknown format closes its partition until the gate is gone: no move has closed
// anything.
func TestGateThatIsGoneIsNotClosed(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.start("a", scheduler.Config{Partitions: 1}, eachSecond("quick", s))
		time.Sleep(5 * time.Second)
		client := c.redis()
		client.Set(t.Context(), "{escapement:0}:gate", "9|of another version", 0)
		client.HSet(t.Context(), "{escapement:0}:jobs", "quick", "9|of another version")
		time.Sleep(5 * time.Second)
		client.FlushAll(t.Context())
		time.Sleep(25 * time.Second)
		if before := time.Now().Add(-5 * time.Second); s.ranOn("a", before) == 0 {
			t.Error("nothing runs")
		}
		if c.logs.count("(the other side is )") > 0 {
			t.Error("a move without a name is logged")
		}
	})
}
