package ledger

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
)

// TestRerunOfShards: a shard alone is a run by itself that holds the job; a whole tick is opened anew, as an
// attempt after that of any shard. No number is given twice.
func TestRerunOfShards(t *testing.T) {
	onBoth(t, Config{Partitions: 1, Keep: 100}, func(t *testing.T, r *rig) {
		refused := func(run string) {
			t.Helper()
			if got, err := r.led.Rerun(t.Context(), "a", run); !errors.Is(err, ErrRefused) {
				t.Fatalf("rerun of %s: %q, %v", run, got, err)
			}
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, Opened, sharded(3, tickClaim("a", "x", 1), "p", "q", "r"))
		refused("x")
		refused("x.0")
		r.want(t, Granted, attempts(3, shardClaim("a", "x", 2)))
		r.reap(t, "a", "x.2")
		r.want(t, Granted, shardAgain("a", Successor("x.2")))
		r.settle(t, Settled, "a", Successor("x.2"), jobs.OutcomeFailed)
		r.ended(t, "a", "x", jobs.OutcomeSucceeded, jobs.OutcomeSucceeded)

		alone := must(r.led.Rerun(t.Context(), "a", "x.1"))
		refused("x") // it would be an attempt of shard 1 too
		a := r.want(t, Granted, sharded(3, pendingClaim("a", alone)))
		if l := a.Run; l.Of != "" || l.Shard != 1 || l.Shards != 3 || l.Param != "q" || l.Attempt != 2 || l.Prev != 0 {
			t.Errorf("granted %+v", l)
		}
		if e := r.entry(t, "a"); e.Open != alone {
			t.Errorf("held by %q", e.Open)
		}
		r.want(t, Held, sharded(3, tickClaim("a", "y", 2)))
		r.settle(t, Settled, "a", alone, jobs.OutcomeSucceeded)
		r.proven(t)

		all := must(r.led.Rerun(t.Context(), "a", "x"))
		if l := r.open(t, "a"); l.Attempt != 3 || l.Shards != 1 || l.Of != "" || l.Param != "" {
			t.Errorf("pending: %+v", l)
		}
		refused("x.0") // would be its attempt 2, and after that comes the whole tick's
		refused(alone)
		r.proven(t)
		r.want(t, Opened, sharded(2, pendingClaim("a", all))) // as the definition says now
		if got := must(r.led.Rerun(t.Context(), "a", "x")); got != all {
			t.Errorf("asked again: %s", got)
		}
		refused("x.0")
		r.ended(t, "a", all, jobs.OutcomeSucceeded, jobs.OutcomeSucceeded)
		third := must(r.led.Rerun(t.Context(), "a", Successor("x.2"))) // of shard 2 there was no third attempt
		if l := r.open(t, "a"); l.Run != third || l.Attempt != 3 {
			t.Errorf("pending: %+v", l)
		}
		r.want(t, Granted, sharded(2, pendingClaim("a", third)))
		r.settle(t, Settled, "a", third, jobs.OutcomeSucceeded)
		one := must(r.led.Rerun(t.Context(), "a", all))
		r.want(t, Granted, pendingClaim("a", one)) // and now it has one shard
		r.settle(t, Settled, "a", one, jobs.OutcomeSucceeded)
		r.parts(t, "a", "2/3 abandoned 1", "2/3 failed 1 #2", "0/3 succeeded 1", "1/3 succeeded 1", "all 3 failed 1: 1 of 3 shards did not succeed",
			"1/3 alone succeeded 1 #2", "0/2 succeeded 1 #3", "1/2 succeeded 1 #3", "all 2 succeeded 1 #3", "2/3 alone succeeded 1 #3", "succeeded 1 #4")
		r.proven(t)
	})
}

// TestShardedFollowers: a follower's tick is opened when it is claimed; those who follow a sharded job hear of
// its ticks as a whole, and nothing of a shard that is repeated alone.
func TestShardedFollowers(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b", "c")
		r.pass(t, 20*time.Second)
		r.want(t, Opened, sharded(2, tickClaim("a", "x", 1)))
		r.ended(t, "a", "x", jobs.OutcomeSucceeded)
		if e := r.events(t); len(e) != 0 {
			t.Fatalf("told of %+v", e)
		}
		r.want(t, Granted, shardClaim("a", "x", 1))
		r.settle(t, Settled, "a", "x.1", jobs.OutcomeSucceeded)
		e := r.events(t)
		if len(e) != 1 || e[0].Tick != noon+1000 || e[0].Next != noon+2000 || e[0].Outcome != jobs.OutcomeSucceeded || e[0].Count != 1 {
			t.Fatalf("told of %+v", e)
		}
		r.relayAll(t)
		alone := must(r.led.Rerun(t.Context(), "a", "x.0"))
		r.want(t, Granted, pendingClaim("a", alone))
		r.settle(t, Settled, "a", alone, jobs.OutcomeFailed)
		if e := r.events(t); len(e) != 0 {
			t.Errorf("told of a shard: %+v", e)
		}
		l := r.open(t, "b")
		follower := after(jobs.OverlapSkip, "b", l.Run)
		r.want(t, Opened, sharded(2, follower))
		for i := range 2 {
			follower.Run, follower.Shard = ShardRun(l.Run, i), true
			if a := r.want(t, Granted, follower); a.Run.Tick != noon+1000 || a.Run.Trigger != "after" {
				t.Errorf("granted %+v", a.Run)
			}
			if r.relayAll(t); i == 0 {
				if r.settle(t, Settled, "b", follower.Run, jobs.OutcomeFailed); r.open(t, "c") != nil || len(r.events(t)) != 0 {
					t.Error("told of half a tick")
				}
			}
		}
		r.settle(t, Settled, "b", follower.Run, jobs.OutcomeSucceeded)
		r.relayAll(t)
		r.parts(t, "b", "0/2 failed 1", "1/2 succeeded 1", "all 2 failed 1: 1 of 2 shards did not succeed")
		r.tale(t, "c", "skipped 1-1 x1 upstream failed")

		all := must(r.led.Rerun(t.Context(), "b", l.Run))
		r.want(t, Opened, sharded(2, after(jobs.OverlapSkip, "b", all)))
		for i := range 2 {
			follower.Run = ShardRun(all, i)
			r.want(t, Granted, follower)
			r.settle(t, Settled, "b", follower.Run, jobs.OutcomeSucceeded)
		}
		r.relayAll(t)
		if l := r.open(t, "c"); l == nil || l.Tick != noon+1000 {
			t.Errorf("pending: %+v", l)
		}
		must(r.led.Relay(t.Context(), e[0], "b")) // what b has done is done
		if l := r.open(t, "b"); l != nil {
			t.Errorf("pending: %+v", l)
		}
		r.proven(t)
	})
}

// TestFullPartition: a tick is opened with all its shards or not at all.
func TestFullPartition(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		pending := r.led.keys[0].pending
		var others []redis.Z
		for i := range pendingMax - 3 { // which leaves room for two
			others = append(others, redis.Z{Score: float64(r.now), Member: fmt.Sprint("other ", i)})
		}
		r.client.ZAdd(t.Context(), pending, others...)
		full := sharded(3, passing("a", "x", 2, late(1, 1)))
		r.unchanged(t, "a claim of too many shards", func() {
			for _, c := range []Claim{full, sharded(3, pendingClaim("a", "t"))} {
				if a := r.want(t, Held, c); a.Detail != "full partition" {
					t.Errorf("held by %q", a.Detail)
				}
			}
		})
		r.want(t, Opened, sharded(2, full))
		if n := r.client.ZCard(t.Context(), pending).Val(); n != pendingMax {
			t.Errorf("%d are pending", n)
		}
		r.unchanged(t, "asking again", func() { r.want(t, Opened, sharded(2, full)) })
		r.client.ZRem(t.Context(), pending, "other 0")
		r.want(t, Granted, shardClaim("a", "x", 0)) // what is open goes on
	})
}

// TestManyShards: the most that a job may have, opened, run, repeated and recorded.
func TestManyShards(t *testing.T) {
	const many = 1024
	onBoth(t, Config{Partitions: 1, Keep: 5000}, func(t *testing.T, r *rig) {
		params := make([]string, many)
		for i := range params {
			params[i] = fmt.Sprint("part | ", i)
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, Opened, sharded(many, tickClaim("a", "x", 1), params...))
		for from := 0; from < many; from += BatchMax {
			var claims []Claim
			var reports []Report
			for i := from; i < min(many, from+BatchMax); i++ {
				claims = append(claims, shardClaim("a", "x", i))
				reports = append(reports, Report{Job: "a", Run: ShardRun("x", i), Outcome: jobs.OutcomeSucceeded, Started: r.now, Ended: r.now})
			}
			for i, a := range must(r.led.Claim(t.Context(), node, r.now, claims)) {
				if a.Verdict != Granted || a.Run.Shard != from+i || a.Run.Param != params[from+i] {
					t.Fatalf("shard %d: %+v", from+i, a)
				}
			}
			for i, w := range must(r.led.Settle(t.Context(), reports)) {
				if w != Settled {
					t.Fatalf("shard %d: %s", from+i, w)
				}
			}
		}
		rows := r.rows(t, "a")
		if last := rows[len(rows)-1]; len(rows) != many+1 || !last.Whole || last.Shards != many || last.Outcome != jobs.OutcomeSucceeded {
			t.Errorf("%d rows, the last is %+v", len(rows), last)
		}
		r.proven(t)
	})
}

// TestShardedHistoryIsTrimmed: the base moves on with the ticks' rows, and what is kept of a tick leaves with
// its row.
func TestShardedHistoryIsTrimmed(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Hour)
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t", Payload: []byte("p")}))
		r.want(t, Opened, sharded(2, pendingClaim("a", "t")))
		r.ended(t, "a", "t", jobs.OutcomeSucceeded, jobs.OutcomeSucceeded)
		for s := int64(1); s <= 40; s++ {
			tick := fmt.Sprint("x", s)
			r.want(t, Opened, sharded(2, tickClaim("a", tick, s)))
			r.ended(t, "a", tick, jobs.OutcomeSucceeded, jobs.OutcomeSucceeded)
			rows := r.rows(t, "a")
			first := rows[slices.IndexFunc(rows, func(row Row) bool { return row.Prev != 0 })]
			if base := r.entry(t, "a").Base; base != first.Prev || len(rows) > 31 {
				t.Fatalf("after tick %d there are %d rows, the base is %d, the first step begins at %d", s, len(rows), base, first.Prev)
			}
			r.proven(t)
		}
		if left := r.client.HGetAll(t.Context(), r.led.keys[0].kept).Val(); len(left) != 0 {
			t.Errorf("left when its row is gone: %v", left)
		}
	})
}
