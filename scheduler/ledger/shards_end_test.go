package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// TestShardHandedBack: it goes on under another id, of the same tick, also while the job is paused.
func TestShardHandedBack(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, Opened, sharded(2, tickClaim("a", "x", 1), "", "here"))
		first := r.want(t, Granted, shardClaim("a", "x", 1)).Token
		for range 2 {
			if got := must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: "x.1"}})); got[0] != Returned {
				t.Fatalf("handed back: %s", got[0])
			}
		}
		r.proven(t)
		if l := r.left(t, "a", "x"); l.Left != 2 || r.entry(t, "a").Open != "x" {
			t.Errorf("the tick is %+v", l)
		}
		r.want(t, Moved, shardClaim("a", "x", 1))
		r.pause(t, "a", Pause{})
		a := r.want(t, Granted, shardAgain("a", Successor("x.1")))
		if a.Run.Of != "x" || a.Run.Shard != 1 || a.Run.Param != "here" || a.Run.Attempt != 1 || a.Token <= first {
			t.Errorf("granted %+v", a)
		}
		r.settle(t, Settled, "a", Successor("x.1"), jobs.OutcomeSucceeded)
		r.ended(t, "a", "x", jobs.OutcomeSucceeded) // a pause holds none of them
		r.parts(t, "a", "1/2 succeeded 1", "0/2 succeeded 1", "all 2 succeeded 1")
		r.proven(t)
	})
}

// TestShardCrashes: each has attempts of its own, and the tick waits for the last of them.
func TestShardCrashes(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		r.want(t, Opened, sharded(2, tickClaim("a", "x", 1), "p", "q"))
		crash := func(run string) {
			t.Helper()
			r.want(t, Granted, attempts(2, shardAgain("a", run)))
			r.reap(t, "a", run)
			r.proven(t)
		}
		crash("x.0")
		if l := r.left(t, "a", "x"); l == nil || l.Left != 2 || r.entry(t, "a").Open != "x" {
			t.Fatalf("after the first crash the tick is %+v", l)
		}
		r.want(t, Skipped, sharded(2, tickClaim("a", "y", 2)))
		again := Successor("x.0")
		a := r.want(t, Granted, attempts(2, shardAgain("a", again)))
		if a.Run.Of != "x" || a.Run.Param != "p" || a.Run.Attempt != 2 || a.Run.Trigger != "rerun" {
			t.Errorf("granted %+v", a.Run)
		}
		r.reap(t, "a", again) // no attempts are left
		if l := r.left(t, "a", "x"); l == nil || l.Left != 1 {
			t.Fatalf("after the second crash the tick is %+v", l)
		}
		crash("x.1")
		r.want(t, Granted, attempts(2, shardAgain("a", Successor("x.1"))))
		r.settle(t, Settled, "a", Successor("x.1"), jobs.OutcomeSucceeded)
		r.parts(t, "a", "0/2 abandoned 1", "skipped 2", "0/2 abandoned 1 #2", "1/2 abandoned 1", "1/2 succeeded 1 #2",
			"all 2 abandoned 1: 1 of 2 shards did not succeed")
		if e := r.entry(t, "a"); e.Open != "" || e.Counts[jobs.OutcomeAbandoned] != 3 {
			t.Errorf("the entry is %+v", e)
		}
		r.proven(t)
	})
}

// TestCancelATick: running shards are told, those that wait are recorded when they are claimed, those that
// have ended stay as they are; a crash is not repeated.
func TestCancelATick(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, Opened, sharded(5, tickClaim("a", "x", 1)))
		r.ended(t, "a", "x", jobs.OutcomeSucceeded)
		for i := 1; i < 4; i++ {
			r.want(t, Granted, attempts(3, shardClaim("a", "x", i)))
		}
		for range 2 {
			if got := must(r.led.Cancel(t.Context(), "a", "x", "ann", "why")); got != Told {
				t.Fatalf("cancel: %s", got)
			}
		}
		if flags := must(r.led.Cancels(t.Context())); len(flags) != 1 || flags[0] != (Cancel{"x", "ann", "why"}) {
			t.Errorf("flags %+v", flags)
		}
		if got, err := r.led.Cancel(t.Context(), "b", "x", "", ""); !errors.Is(err, ErrUnknownRun) {
			t.Errorf("for another job: %s, %v", got, err)
		}
		if a := r.want(t, Passed, shardClaim("a", "x", 4)); a.Detail != "cancelled,cancelled by ann: why" {
			t.Errorf("answered %+v", a)
		}
		r.want(t, Moved, shardClaim("a", "x", 4))
		r.settle(t, Settled, "a", "x.1", jobs.OutcomeCancelled)
		must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: "x.2"}}))
		r.proven(t)
		r.reap(t, "a", "x.3")
		r.parts(t, "a", "0/5 succeeded 1", "4/5 cancelled 1", "1/5 cancelled 1", "2/5 cancelled 1", "3/5 abandoned 1",
			"all 5 abandoned 1: 4 of 5 shards did not succeed")
		if flags := must(r.led.Cancels(t.Context())); len(flags) != 0 || r.entry(t, "a").Open != "" {
			t.Errorf("flags %+v", flags)
		}
		if _, err := r.led.Cancel(t.Context(), "a", "x", "", ""); !errors.Is(err, ErrRefused) {
			t.Errorf("when it has ended: %v", err)
		}
		r.proven(t)
	})
}

// One pending shard alone is recorded as cancelled at once, also the last one.
func TestCancelAShard(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, Opened, sharded(2, tickClaim("a", "x", 1)))
		for i, run := range []string{"x.1", "x.0"} {
			if got := must(r.led.Cancel(t.Context(), "a", run, "ann", "")); got != Cancelled {
				t.Fatalf("cancel: %s", got)
			}
			if open := r.entry(t, "a").Open == "x"; open != (i == 0) {
				t.Errorf("held: %v, after %d", open, i)
			}
			r.proven(t)
		}
		r.parts(t, "a", "1/2 cancelled 1", "0/2 cancelled 1", "all 2 cancelled 1: 2 of 2 shards did not succeed")
		if got := must(r.led.Cancel(t.Context(), "a", "x", "", "")); got != Cancelled {
			t.Errorf("the tick again: %s", got)
		}
		r.want(t, Opened, sharded(2, tickClaim("a", "y", 2)))
	})
}

// TestRemoveWithAnOpenTick: not while a shard runs; then all of it goes, also the wish that it ends.
func TestRemoveWithAnOpenTick(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "other")
		r.pass(t, time.Minute)
		r.want(t, Opened, sharded(2, tickClaim("other", "z", 1)))
		must(r.led.Cancel(t.Context(), "other", "z", "bob", ""))
		before := dump(t, r.client)
		r.create(t, "a")
		r.want(t, Opened, sharded(3, tickClaim("a", "x", 1)))
		r.want(t, Granted, shardClaim("a", "x", 0))
		must(r.led.Cancel(t.Context(), "a", "x", "ann", ""))
		if err := r.led.Remove(t.Context(), "a"); !errors.Is(err, ErrRefused) {
			t.Fatalf("while a shard runs: %v", err)
		}
		r.settle(t, Settled, "a", "x.0", jobs.OutcomeSucceeded)
		if err := r.led.Remove(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if wrong := differences(before, dump(t, r.client)); len(wrong) > 0 {
			t.Errorf("what stays differs: %v", wrong)
		}
	})
}

// A cursor is not set back under an open tick, whoever wanted that, and whether it holds the job or not.
func TestRewindWaitsForAnOpenTick(t *testing.T) {
	for _, o := range []jobs.Overlap{jobs.OverlapSkip, jobs.OverlapAllow} {
		t.Run(o.String(), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, time.Minute)
				r.want(t, Opened, with(o, sharded(2, tickClaim("a", "x", 1))))
				back := Rewind{Job: "a", Digest: "d-second", From: noon + 2000, To: noon + 1000}
				for i := range 2 {
					r.unchanged(t, "a refused rewind", func() {
						if _, err := r.led.Rewind(t.Context(), r.now, back); !errors.Is(err, ErrRefused) {
							t.Fatalf("before shard %d: %v", i, err)
						}
					})
					r.want(t, Granted, with(o, attempts(3, shardClaim("a", "x", i))))
					if i == 0 {
						r.settle(t, Settled, "a", "x.0", jobs.OutcomeSucceeded)
					}
				}
				r.reap(t, "a", "x.1")
				r.want(t, Granted, with(o, attempts(3, shardAgain("a", Successor("x.1")))))
				r.settle(t, Settled, "a", Successor("x.1"), jobs.OutcomeSucceeded)
				must(r.led.Rewind(t.Context(), r.now, back))
				r.want(t, Moved, with(o, sharded(2, tickClaim("a", "x", 1)))) // that one has ended
				r.want(t, Opened, with(o, sharded(2, tickClaim("a", "y", 1))))
				if a := r.want(t, Granted, with(o, shardClaim("a", "y", 0))); a.Run.Attempt != 3 {
					t.Errorf("granted %+v", a.Run)
				}
				r.proven(t)
			})
		})
	}
}

// TestOpenTickOfANewerVersion: nothing is done to its shards that would have to be noted in it.
func TestOpenTickOfANewerVersion(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, Opened, sharded(3, tickClaim("a", "x", 1)))
		r.want(t, Granted, shardClaim("a", "x", 0))
		waiting := r.led.keys[0].waiting
		own := r.client.HGet(t.Context(), waiting, "x").Val()
		r.client.HSet(t.Context(), waiting, "x", "2"+own[1:])
		r.pass(t, 2*ttl)
		r.unchanged(t, "a tick that cannot be read", func() {
			r.settle(t, Strange, "a", "x.0", jobs.OutcomeSucceeded)
			if got := must(r.led.Reap(t.Context(), r.now, r.identity, []Lease{{Job: "a", Run: "x.0"}})); got[0] != Strange {
				t.Errorf("reaped: %s", got[0])
			}
			r.want(t, Foreign, shardClaim("a", "x", 1))
			r.want(t, Foreign, sharded(3, pendingClaim("a", "x")))
			for _, run := range []string{"x", "x.1"} {
				if _, err := r.led.Cancel(t.Context(), "a", run, "", ""); !errors.Is(err, ErrForeign) {
					t.Errorf("cancel of %s: %v", run, err)
				}
			}
			if err := r.led.Remove(t.Context(), "a"); !errors.Is(err, ErrRefused) {
				t.Errorf("remove: %v", err)
			}
		})
		r.client.HSet(t.Context(), waiting, "x", own)
		r.settle(t, Settled, "a", "x.0", jobs.OutcomeSucceeded)
		for i := 1; i < 3; i++ {
			r.want(t, Granted, shardClaim("a", "x", i))
			r.settle(t, Settled, "a", ShardRun("x", i), jobs.OutcomeSucceeded)
		}
		r.parts(t, "a", "0/3 succeeded 1", "1/3 succeeded 1", "2/3 succeeded 1", "all 3 succeeded 1")
		r.proven(t)
	})
}
