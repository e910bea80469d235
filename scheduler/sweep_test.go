package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
)

// A record in an unknown format keeps only its own job from running, also when another job must be
// registered again, and is logged once, not in every sweep.
func TestForeignRecordsConcernTheirJobAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		c.start("a", scheduler.Config{}, eachSecond("newer", s), eachSecond("lost", s), eachSecond("well", s))
		time.Sleep(10*time.Second + 500*time.Millisecond)
		client := c.redis()
		ctx := context.Background()
		client.HSet(ctx, keyOf("newer", "jobs"), "newer", "2|a record of the future")
		client.HDel(ctx, keyOf("lost", "jobs"), "lost")
		client.Del(ctx, keyOf("lost", "history:lost"))
		client.HSet(ctx, keyOf("well", "waiting"), "stranger", "2|a record of the future")
		client.ZAdd(ctx, keyOf("well", "pending"), redis.Z{Score: 1, Member: "stranger"})
		before := map[string]int{"newer": len(s.ticks("newer")), "lost": len(s.ticks("lost")), "well": len(s.ticks("well"))}
		time.Sleep(60 * time.Second)
		for job, least := range map[string]int{"newer": 0, "lost": 55, "well": 59} {
			if n := len(s.ticks(job)) - before[job]; n < least || least == 0 && n > 0 {
				t.Errorf("%s ran %d ticks in a minute, want at least %d", job, n, least)
			}
		}
		if n := c.logs.count("records have a format that") + c.logs.count("has a format that"); n < 2 || n > 8 {
			t.Errorf("the foreign records were said %d times in a minute", n)
		}
		if got := client.HGet(ctx, keyOf("newer", "jobs"), "newer").Val(); got != "2|a record of the future" {
			t.Errorf("the foreign record was changed to %q", got)
		}
		client.HDel(ctx, keyOf("newer", "jobs"), "newer") // the books are looked at when the test ends
		client.Del(ctx, keyOf("newer", "history:newer"), keyOf("well", "waiting"), keyOf("well", "pending"))
	})
}

// Redis loses everything long before a sparse job's tick: the node notices at its next beat, not
// only when the tick is due.
func TestSparseJobSurvivesAWipe(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		job := eachSecond("sparse", s)
		job.Schedule = "@every 2m"
		c.start("a", scheduler.Config{Partitions: 1}, job)
		time.Sleep(time.Minute)
		if err := c.redis().FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second)
		if n := len(s.ticks("sparse")); n != 1 {
			t.Errorf("ran %d times, want the one tick after the wipe", n)
		}
	})
}

// More leases lapse at once than one look reads: all are reaped.
func TestAllLapsedLeasesAreReaped(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		const n = 1200
		client := c.redis()
		ctx := context.Background()
		l, err := ledger.Join(ctx, client, ledger.Config{Partitions: 1})
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now().UnixMilli()
		for i := range n {
			name := fmt.Sprint("job-", i)
			if _, err := define.Define(ctx, l, now, []define.Definition{{Job: name, Digest: "d", Text: []byte("{}"), Cursor: now}}); err != nil {
				t.Fatal(err)
			}
			_, err := claim.Send(ctx, l, claim.Claimer{ID: "gone", Name: "gone"}, now, []claim.Claim{{
				Job: name, Digest: "d", Run: fmt.Sprint("run-", i), TTL: 5 * time.Second, From: now, Tick: now, Next: now + 3_600_000, Trigger: jobs.TriggerSchedule,
			}})
			if err != nil {
				t.Fatal(err)
			}
		}
		c.start("a", scheduler.Config{Partitions: 1}, eachSecond("other", &sink{}))
		time.Sleep(30 * time.Second)
		if got := c.logs.count("run abandoned"); got != n {
			t.Errorf("%d of %d lapsed leases were reaped in 30 s", got, n)
		}
	})
}

// A history key that holds something else keeps its own job from being recorded, no other.
func TestBrokenHistoryConcernsItsJobAlone(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		list := many(8, s)
		c.start("a", scheduler.Config{}, list...)
		time.Sleep(5*time.Second + 500*time.Millisecond)
		client, ctx, broken := c.redis(), t.Context(), list[0].Name
		client.Del(ctx, keyOf(broken, "history:"+broken))
		client.HSet(ctx, keyOf(broken, "history:"+broken), "not", "a history")
		from := time.Now()
		time.Sleep(20 * time.Second)
		s.each(t, list[1:], from, time.Now())
		client.Del(ctx, keyOf(broken, "history:"+broken), keyOf(broken, "runs"))
		for _, l := range list[1:] {
			if runs := c.runs(l.Name); len(runs) < 24 {
				t.Errorf("%s has %d rows", l.Name, len(runs))
			}
		}
		client.HDel(ctx, keyOf(broken, "jobs"), broken) // the books are looked at when the test ends
		s.check(t)
	})
}

// A record contains a due tick of a job that has no schedule: the job goes on following its
// upstream.
func TestDueThoughItFollows(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, _ *redistest.Embedded) {
		s := &sink{}
		up := eachSecond("up", s)
		c.start("a", scheduler.Config{Partitions: 1}, up, jobs.Job{Name: "down", After: []string{"up"}, Func: up.Func})
		time.Sleep(3 * time.Second)
		due := redis.Z{Score: float64(time.Now().UnixMilli()), Member: "down"}
		if err := c.redis().ZAdd(t.Context(), "{escapement:0}:due", due).Err(); err != nil {
			t.Fatal(err)
		}
		before := len(s.ticks("down"))
		time.Sleep(10 * time.Second)
		if n := len(s.ticks("down")) - before; n < 9 {
			t.Errorf("it ran %d times in 10 s after its upstream, which ticks each second", n)
		}
	})
}
