package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// A record that this version does not understand keeps only its own job from running, also when
// another job must be registered again, and is said once, not in every sweep.
func TestForeignRecordsConcernTheirJobAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		c.start("a", scheduler.Config{}, eachSecond("newer", s), eachSecond("lost", s), eachSecond("well", s))
		time.Sleep(10*time.Second + 500*time.Millisecond)
		client := server.Client()
		defer client.Close()
		key := func(job, what string) string {
			return fmt.Sprintf("{escapement:%d}:%s", ledger.Partition(job, 16), what)
		}
		ctx := context.Background()
		client.HSet(ctx, key("newer", "jobs"), "newer", "2|a record of the future")
		client.HDel(ctx, key("lost", "jobs"), "lost")
		client.Del(ctx, key("lost", "history:lost"))
		client.HSet(ctx, key("well", "waiting"), "stranger", "2|a record of the future")
		client.ZAdd(ctx, key("well", "pending"), redisZ(1, "stranger"))
		before := map[string]int{"newer": len(s.ticks("newer")), "lost": len(s.ticks("lost")), "well": len(s.ticks("well"))}
		time.Sleep(60 * time.Second)
		for job, least := range map[string]int{"newer": 0, "lost": 55, "well": 59} {
			if n := len(s.ticks(job)) - before[job]; n < least || least == 0 && n > 0 {
				t.Errorf("%s ran %d ticks in a minute, want at least %d", job, n, least)
			}
		}
		if n := c.logs.count("not understood") + c.logs.count("does not understand"); n < 2 || n > 8 {
			t.Errorf("the foreign records were said %d times in a minute", n)
		}
		if got := client.HGet(ctx, key("newer", "jobs"), "newer").Val(); got != "2|a record of the future" {
			t.Errorf("the foreign record was changed to %q", got)
		}
		client.HDel(ctx, key("newer", "jobs"), "newer") // the books are looked at when the test ends
		client.Del(ctx, key("newer", "history:newer"), key("well", "waiting"), key("well", "pending"))
	})
}

// Redis loses everything long before a sparse job's tick: the node notices at its next beat, not
// only when the tick is due.
func TestSparseJobSurvivesAWipe(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		job := eachSecond("sparse", s)
		job.Schedule = "@every 10m"
		c.start("a", scheduler.Config{}, job)
		time.Sleep(5 * time.Minute)
		client := server.Client()
		defer client.Close()
		if err := client.FlushAll(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * time.Minute)
		if n := len(s.ticks("sparse")); n != 1 {
			t.Errorf("ran %d times, want the one tick after the wipe", n)
		}
	})
}

// More leases lapse at once than one look reads: all are reaped.
func TestAllLapsedLeasesAreReaped(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		const n = 1200
		client := server.Client()
		defer client.Close()
		ctx := context.Background()
		l, err := ledger.Open(ctx, client, ledger.Config{Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now().UnixMilli()
		for i := range n {
			name := fmt.Sprint("job-", i)
			if _, err := l.Define(ctx, now, []ledger.Definition{{Job: name, Digest: "d", Text: []byte("{}"), Cursor: now}}); err != nil {
				t.Fatal(err)
			}
			_, err := l.Claim(ctx, ledger.Claimer{ID: "gone", Name: "gone"}, now, []ledger.Claim{{
				Job: name, Digest: "d", Run: fmt.Sprint("run-", i), TTL: 5 * time.Second, From: now, Tick: now, Next: now + 3_600_000, Trigger: jobs.TriggerSchedule,
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		c.start("a", scheduler.Config{Partitions: 1}, eachSecond("other", &sink{}))
		time.Sleep(60 * time.Second)
		if got := c.logs.count("run abandoned"); got != n {
			t.Errorf("%d of %d lapsed leases were reaped in a minute", got, n)
		}
	})
}

// One of two nodes dies and 400 of its jobs come due together, all in one partition.
func TestManyLateTicksStartInTime(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		var list []jobs.Job
		for i := range 800 {
			job := eachSecond(fmt.Sprint("job-", i), s)
			job.Schedule = "0 * * * * *"
			list = append(list, job)
		}
		var network redistest.Net
		c.startOver(network.Client(server.Options()), "doomed", scheduler.Config{Partitions: 1, MaxRunning: 1000, DrainTimeout: time.Second}, list...)
		c.start("b", scheduler.Config{Partitions: 1, MaxRunning: 1000}, list...)
		time.Sleep(59 * time.Second)
		network.Cut()
		time.Sleep(10 * time.Second)
		late := 0
		for _, r := range s.all() {
			if r.at.Sub(r.tick) > 2*time.Second {
				late++
			}
		}
		if n := len(s.all()); n != 800 || late > 0 {
			t.Errorf("%d of 800 ticks ran, %d of them more than 2 s late", n, late)
		}
		network.Heal()
		time.Sleep(5 * time.Second)
		c.end()
		s.check(t)
	})
}

// A rollback does not wait for the newer node to finish draining: it claims nothing more.
func TestRollbackDoesNotWaitForADrain(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		changed := eachSecond("job", s)
		changed.Schedule = "*/2 * * * * *"
		busy := jobs.Job{Name: "busy", Schedule: "@every 10s", Func: func(ctx context.Context, _ *jobs.Run) error { <-ctx.Done(); return ctx.Err() }}
		c.start("old", scheduler.Config{Revision: "1"}, eachSecond("job", s))
		fresh := c.start("new", scheduler.Config{Revision: "2", DrainTimeout: time.Minute}, changed, busy)
		time.Sleep(15*time.Second + 500*time.Millisecond)
		fresh.stop()
		before := len(s.all())
		time.Sleep(30 * time.Second)
		if n := len(s.all()) - before; n < 20 {
			t.Errorf("%d ticks ran in 30 s of the newer node's drain, want at least 20", n)
		}
		c.end()
		s.check(t)
	})
}

// A node without a free slot still gets to a run that somebody asked for.
func TestRunByHandOnABusyNode(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		var list []jobs.Job
		for i := range 6 {
			list = append(list, jobs.Job{Name: fmt.Sprint("job-", i), Schedule: "* * * * * *", Func: func(context.Context, *jobs.Run) error {
				time.Sleep(900 * time.Millisecond)
				return nil
			}})
		}
		job := eachSecond("by-hand", s)
		job.Schedule = "0 0 1 1 *"
		c.start("a", scheduler.Config{MaxRunning: 2}, append(list, job)...)
		time.Sleep(10 * time.Second)
		client := server.Client()
		defer client.Close()
		i, err := scheduler.NewInspector(client, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := i.Trigger(context.Background(), "by-hand", scheduler.TriggerOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if n := len(s.all()); n != 1 {
			t.Errorf("ran %d times in 5 s, want once", n)
		}
	})
}

// History keys that hold something else keep their own jobs from being recorded, no others.
func TestBrokenHistoryConcernsItsJobAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		var list []jobs.Job
		for i := range 20 {
			list = append(list, eachSecond(fmt.Sprint("job-", i), s))
		}
		c.start("a", scheduler.Config{}, list...)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		client := server.Client()
		defer client.Close()
		key := fmt.Sprintf("{escapement:%d}:history:job-0", ledger.Partition("job-0", 16))
		client.Del(context.Background(), key)
		client.HSet(context.Background(), key, "not", "a history")
		before := len(s.all())
		time.Sleep(30 * time.Second)
		if n := len(s.all()) - before; n < 19*29 {
			t.Errorf("%d ticks ran, want at least %d of the 19 jobs that are well", n, 19*29)
		}
		client.Del(context.Background(), key, fmt.Sprintf("{escapement:%d}:runs", ledger.Partition("job-0", 16)))
		for _, l := range list[1:] {
			if runs := c.runs(l.Name); len(runs) < 39 {
				t.Errorf("%s has %d rows", l.Name, len(runs))
			}
		}
		client.HDel(context.Background(), fmt.Sprintf("{escapement:%d}:jobs", ledger.Partition("job-0", 16)), "job-0")
		s.check(t)
	})
}

// Redis is away for a few seconds: the ticks of the gap are late, not overlapping, and run in order.
func TestLateTicksRunInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		c.start("a", scheduler.Config{}, jobs.Job{Name: "job", Schedule: "* * * * * *", Func: func(_ context.Context, r *jobs.Run) error {
			s.write(r)
			time.Sleep(100 * time.Millisecond)
			return nil
		}})
		time.Sleep(10*time.Second + 500*time.Millisecond)
		server.Stop()
		time.Sleep(6 * time.Second)
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		c.end()
		s.check(t)
		ticks := s.ticks("job")
		for i := 1; i < len(ticks); i++ {
			if !ticks[i].After(ticks[i-1]) {
				t.Errorf("after tick %s came %s", ticks[i-1], ticks[i])
			}
		}
		// The run of the last late tick may still be going when the next tick comes due.
		if got := outcomes(c.runs("job")); len(ticks) < 34 || got["skipped(overlap)"] > 1 || got["missed(late)"] > 0 {
			t.Errorf("%d of 36 ticks ran, history %v", len(ticks), got)
		}
	})
}

// The node is told to stop while Redis is away: the functions have ended, so it stops, and leaves
// their outcomes to be recorded as abandoned.
func TestDrainWithoutRedis(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		s := &sink{}
		job := eachSecond("job", s)
		n := c.start("a", scheduler.Config{DrainTimeout: 3 * time.Second}, job)
		time.Sleep(10*time.Second + 500*time.Millisecond)
		server.Stop()
		time.Sleep(3 * time.Second)
		n.stop()
		<-n.done
		if n.err != nil {
			t.Errorf("Run returned %v", n.err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
	})
}
