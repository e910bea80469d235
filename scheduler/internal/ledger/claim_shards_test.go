package ledger_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// TestCancelATick: running shards get the flag, pending shards are recorded when they are claimed,
// ended shards stay as they are; a crash is not repeated.
func TestCancelATick(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, claim.Opened, sharded(5, tickClaim("a", "x", 1)))
		r.ended(t, "a", "x", jobs.OutcomeSucceeded)
		for i := 1; i < 4; i++ {
			r.want(t, claim.Granted, attempts(3, shardClaim("a", "x", i)))
		}
		for range 2 {
			if got := must(operate.Cancel(t.Context(), r.led, "a", "x", "ann", "why")); got != operate.Flagged {
				t.Fatalf("cancel: %s", got)
			}
		}
		if flags := must(query.Cancels(t.Context(), r.led)); len(flags) != 1 || flags[0] != (ledger.Cancel{"x", "ann", "why"}) {
			t.Errorf("flags %+v", flags)
		}
		if got, err := operate.Cancel(t.Context(), r.led, "b", "x", "", ""); !errors.Is(err, ledger.ErrUnknownRun) {
			t.Errorf("for another job: %s, %v", got, err)
		}
		if a := r.want(t, claim.RecordedOnly, shardClaim("a", "x", 4)); a.Detail != "cancelled,cancelled by ann: why" {
			t.Errorf("answered %+v", a)
		}
		r.want(t, claim.Stale, shardClaim("a", "x", 4))
		r.settle(t, settle.Settled, "a", "x.1", jobs.OutcomeCancelled)
		must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: "a", Run: "x.2"}}))
		r.sound(t)
		r.reap(t, "a", "x.3")
		r.tale(t, "a", "0/5 succeeded 1", "4/5 cancelled 1", "1/5 cancelled 1", "2/5 cancelled 1", "3/5 abandoned 1",
			"all 5 abandoned 1: 4 of 5 shards did not succeed")
		if flags := must(query.Cancels(t.Context(), r.led)); len(flags) != 0 || r.entry(t, "a").HolderRun != "" {
			t.Errorf("flags %+v", flags)
		}
		if _, err := operate.Cancel(t.Context(), r.led, "a", "x", "", ""); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("when it has ended: %v", err)
		}
		r.sound(t)
	})
}

// TestOpenTickOfANewerVersion: nothing is done to its shards that would have to be noted in it.
func TestOpenTickOfANewerVersion(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, claim.Opened, sharded(3, tickClaim("a", "x", 1)))
		r.want(t, claim.Granted, shardClaim("a", "x", 0))
		waiting := r.led.Keys[0].Waiting
		own := r.client.HGet(t.Context(), waiting, "x").Val()
		r.client.HSet(t.Context(), waiting, "x", "2"+own[1:])
		r.pass(t, 2*ttl)
		r.unchanged(t, "a tick that cannot be read", func() {
			r.settle(t, ledger.StatusUnknownFormat, "a", "x.0", jobs.OutcomeSucceeded)
			if got := must(settle.Reap(t.Context(), r.led, r.now, r.epoch(), []ledger.Run{{Job: "a", ID: "x.0"}})); got[0] != ledger.StatusUnknownFormat {
				t.Errorf("reaped: %s", got[0])
			}
			r.want(t, claim.VerdictUnknownFormat, shardClaim("a", "x", 1))
			r.want(t, claim.VerdictUnknownFormat, sharded(3, pendingClaim("a", "x")))
			for _, run := range []string{"x", "x.1"} {
				if _, err := operate.Cancel(t.Context(), r.led, "a", run, "", ""); !errors.Is(err, ledger.ErrUnknownFormat) {
					t.Errorf("cancel of %s: %v", run, err)
				}
			}
			if err := operate.Remove(t.Context(), r.led, "a"); !errors.Is(err, ledger.ErrRefused) {
				t.Errorf("remove: %v", err)
			}
		})
		r.client.HSet(t.Context(), waiting, "x", own)
		r.settle(t, settle.Settled, "a", "x.0", jobs.OutcomeSucceeded)
		for i := 1; i < 3; i++ {
			r.complete(t, jobs.OutcomeSucceeded, shardClaim("a", "x", i))
		}
		r.tale(t, "a", "0/3 succeeded 1", "1/3 succeeded 1", "2/3 succeeded 1", "all 3 succeeded 1")
		r.sound(t)
	})
}

// TestRerunOfShards: a shard alone is a run by itself that holds the job; a whole tick is opened
// anew, as an attempt after the attempts of all its shards. No number is given twice.
func TestRerunOfShards(t *testing.T) {
	onBoth(t, ledger.Config{Partitions: 1, Keep: 100}, func(t *testing.T, r *rig) {
		refused := func(run string) {
			t.Helper()
			if got, err := operate.Rerun(t.Context(), r.led, "a", run); !errors.Is(err, ledger.ErrRefused) {
				t.Fatalf("rerun of %s: %q, %v", run, got, err)
			}
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, claim.Opened, sharded(3, tickClaim("a", "x", 1), "p", "q", "r"))
		refused("x")
		refused("x.0")
		r.want(t, claim.Granted, attempts(3, shardClaim("a", "x", 2)))
		r.reap(t, "a", "x.2")
		r.complete(t, jobs.OutcomeFailed, shardAgain("a", ledger.NextAttemptID("x.2")))
		r.ended(t, "a", "x", jobs.OutcomeSucceeded, jobs.OutcomeSucceeded)

		alone := must(operate.Rerun(t.Context(), r.led, "a", "x.1"))
		refused("x") // it would be an attempt of shard 1 too
		a := r.want(t, claim.Granted, sharded(3, pendingClaim("a", alone)))
		if l := a.Run; l.TickID != "" || l.Shard != 1 || l.Shards != 3 || l.Param != "q" || l.Attempt != 2 || l.Prev != 0 {
			t.Errorf("granted %+v", l)
		}
		if e := r.entry(t, "a"); e.HolderRun != alone {
			t.Errorf("held by %q", e.HolderRun)
		}
		r.want(t, claim.JobBusy, sharded(3, tickClaim("a", "y", 2)))
		r.settle(t, settle.Settled, "a", alone, jobs.OutcomeSucceeded)
		r.sound(t)

		all := must(operate.Rerun(t.Context(), r.led, "a", "x"))
		if l := r.open(t, "a"); l.Attempt != 3 || l.Shards != 1 || l.TickID != "" || l.Param != "" {
			t.Errorf("pending: %+v", l)
		}
		refused("x.0") // would be its attempt 2, and after that comes the whole tick's
		refused(alone)
		r.sound(t)
		r.want(t, claim.Opened, sharded(2, pendingClaim("a", all))) // as the current definition has it
		if got := must(operate.Rerun(t.Context(), r.led, "a", "x")); got != all {
			t.Errorf("asked again: %s", got)
		}
		refused("x.0")
		r.ended(t, "a", all, jobs.OutcomeSucceeded, jobs.OutcomeSucceeded)
		third := must(operate.Rerun(t.Context(), r.led, "a", ledger.NextAttemptID("x.2"))) // of shard 2 there was no third attempt
		if l := r.open(t, "a"); l.ID != third || l.Attempt != 3 {
			t.Errorf("pending: %+v", l)
		}
		r.complete(t, jobs.OutcomeSucceeded, sharded(2, pendingClaim("a", third)))
		one := must(operate.Rerun(t.Context(), r.led, "a", all))
		r.want(t, claim.Granted, pendingClaim("a", one)) // and now it has one shard
		r.settle(t, settle.Settled, "a", one, jobs.OutcomeSucceeded)
		r.tale(t, "a", "2/3 abandoned 1", "2/3 failed 1 #2", "0/3 succeeded 1", "1/3 succeeded 1", "all 3 failed 1: 1 of 3 shards did not succeed",
			"1/3 alone succeeded 1 #2", "0/2 succeeded 1 #3", "1/2 succeeded 1 #3", "all 2 succeeded 1 #3", "2/3 alone succeeded 1 #3", "succeeded 1 #4")
		r.sound(t)
	})
}

// TestShardedFollowers: a follower's tick is opened when it is claimed; followers of a sharded job
// get events of its ticks as a whole, and none of a shard that is repeated alone.
func TestShardedFollowers(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b", "c")
		r.pass(t, 20*time.Second)
		r.want(t, claim.Opened, sharded(2, tickClaim("a", "x", 1)))
		r.ended(t, "a", "x", jobs.OutcomeSucceeded)
		if e := r.events(t); len(e) != 0 {
			t.Fatalf("told of %+v", e)
		}
		r.want(t, claim.Granted, shardClaim("a", "x", 1))
		r.settle(t, settle.Settled, "a", "x.1", jobs.OutcomeSucceeded)
		e := r.events(t)
		if len(e) != 1 || e[0].Tick != noon+1000 || e[0].Next != noon+2000 || e[0].Outcome != jobs.OutcomeSucceeded || e[0].Count != 1 {
			t.Fatalf("told of %+v", e)
		}
		r.relayAll(t)
		alone := must(operate.Rerun(t.Context(), r.led, "a", "x.0"))
		r.complete(t, jobs.OutcomeFailed, pendingClaim("a", alone))
		if e := r.events(t); len(e) != 0 {
			t.Errorf("told of a shard: %+v", e)
		}
		l := r.open(t, "b")
		follower := after(jobs.OverlapSkip, "b", l.ID)
		r.want(t, claim.Opened, sharded(2, follower))
		for i := range 2 {
			follower.Run, follower.Shard = claim.ShardRun(l.ID, i), true
			if a := r.want(t, claim.Granted, follower); a.Run.Tick != noon+1000 || a.Run.Trigger != "after" {
				t.Errorf("granted %+v", a.Run)
			}
			if r.relayAll(t); i == 0 {
				if r.settle(t, settle.Settled, "b", follower.Run, jobs.OutcomeFailed); r.open(t, "c") != nil || len(r.events(t)) != 0 {
					t.Error("told of half a tick")
				}
			}
		}
		r.settle(t, settle.Settled, "b", follower.Run, jobs.OutcomeSucceeded)
		r.relayAll(t)
		r.tale(t, "b", "0/2 failed 1", "1/2 succeeded 1", "all 2 failed 1: 1 of 2 shards did not succeed")
		r.tale(t, "c", "skipped 1-1 x1 upstream failed")
		must(follow.Relay(t.Context(), r.led, e[0], "b")) // what b has done is done
		if l := r.open(t, "b"); l != nil {
			t.Errorf("pending: %+v", l)
		}
		r.sound(t)
	})
}

// TestFullPartition: a tick is opened with all its shards or not at all.
func TestFullPartition(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "t"}))
		pending := r.led.Keys[0].Pending
		r.client.ZAdd(t.Context(), pending, members(ledger.PendingMax-3)...) // which leaves room for two
		full := sharded(3, passing("a", "x", 2, late(1, 1)))
		r.unchanged(t, "a claim of too many shards", func() {
			for _, c := range []claim.Claim{full, sharded(3, pendingClaim("a", "t"))} {
				if a := r.want(t, claim.JobBusy, c); a.Detail != "full partition" {
					t.Errorf("held by %q", a.Detail)
				}
			}
		})
		r.want(t, claim.Opened, sharded(2, full))
		if n := r.client.ZCard(t.Context(), pending).Val(); n != ledger.PendingMax {
			t.Errorf("%d are pending", n)
		}
		r.unchanged(t, "asking again", func() { r.want(t, claim.Opened, sharded(2, full)) })
		r.client.ZRem(t.Context(), pending, "other-0")
		r.want(t, claim.Granted, shardClaim("a", "x", 0)) // an open tick goes on
	})
}

// TestManyShards: the most that a job may have, opened, run and recorded.
func TestManyShards(t *testing.T) {
	const many = 1024
	useScripts(t, steered...)
	r := realRig(t, ledger.Config{Partitions: 1, Keep: 5000})
	params := make([]string, many)
	var claims []claim.Claim
	for i := range params {
		params[i] = fmt.Sprint("part | ", i)
		claims = append(claims, shardClaim("a", "x", i))
	}
	r.create(t, "a")
	r.pass(t, time.Minute)
	r.want(t, claim.Opened, sharded(many, tickClaim("a", "x", 1), params...))
	for batch := range slices.Chunk(claims, ledger.BatchMax) {
		for _, a := range must(claim.Send(t.Context(), r.led, node, r.now, batch)) {
			if a.Verdict != claim.Granted || a.Run.Param != params[a.Run.Shard] {
				t.Fatalf("%+v", a)
			}
		}
		must(settle.Settle(t.Context(), r.led, each(batch, func(c claim.Claim) settle.Report {
			return settle.Report{Job: "a", Run: c.Run, Outcome: jobs.OutcomeSucceeded, Ended: r.now}
		})))
	}
	rows := r.rows(t, "a")
	if last := rows[len(rows)-1]; len(rows) != many+1 || !last.IsTick || last.Shards != many || last.Outcome != jobs.OutcomeSucceeded {
		t.Errorf("%d rows, the last is %+v", len(rows), last)
	}
	r.sound(t)
}

// The rows of a tick's shards leave the history before the tick's own. The tick's next attempt
// still has the number of attempts of its shards.
func TestAttemptsOfATrimmedTick(t *testing.T) {
	for name, anew := range map[string]func(t *testing.T, r *rig) string{
		"rerun": func(t *testing.T, r *rig) string {
			id := must(operate.Rerun(t.Context(), r.led, "a", "x"))
			r.want(t, claim.Opened, sharded(14, pendingClaim("a", id)))
			return id
		},
		"rewind": func(t *testing.T, r *rig) string {
			if word := must(operate.Rewind(t.Context(), r.led, r.now, operate.RewindRequest{Job: "a", Digest: "d-second", From: noon + 17000, To: noon + 1000})); word != operate.Rewound {
				t.Fatal(word)
			}
			r.want(t, claim.Opened, sharded(14, tickClaim("a", "y", 1)))
			return "y"
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, time.Minute)
				r.want(t, claim.Opened, sharded(14, tickClaim("a", "x", 1)))
				run := "x.0"
				for range 2 { // it crashes twice
					r.want(t, claim.Granted, attempts(3, shardAgain("a", run)))
					r.reap(t, "a", run)
					run = ledger.NextAttemptID(run)
				}
				r.complete(t, jobs.OutcomeSucceeded, attempts(3, shardAgain("a", run)))
				for shard := 1; shard < 14; shard++ {
					r.complete(t, jobs.OutcomeSucceeded, shardClaim("a", "x", shard))
				}
				r.pass(t, time.Minute)
				for s := int64(2); s <= 16; s++ {
					r.runOne(t, "a", s)
				}
				if rows := r.rows(t, "a"); !rows[0].IsTick {
					t.Fatalf("the history begins with %+v", rows[0])
				}
				if a := r.want(t, claim.Granted, shardClaim("a", anew(t, r), 0)); a.Run.Attempt != 4 {
					t.Errorf("attempt %d, after three", a.Run.Attempt)
				}
			})
		})
	}
}
