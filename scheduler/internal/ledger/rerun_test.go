package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func TestRerun(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		refused := func(job, run string, want error) {
			t.Helper()
			if got, err := r.led.Rerun(t.Context(), job, run); got != "" || !errors.Is(err, want) {
				t.Fatalf("rerun of %s: %q, %v, want %v", run, got, err, want)
			}
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		refused("nobody", "r1", ErrUnknownRun)
		refused("a", "r1", ErrUnknownRun)
		r.want(t, Granted, attempts(2, tickClaim("a", "r1", 1)))
		refused("a", "r1", ErrRefused) // it runs
		r.settle(t, Settled, "a", "r1", jobs.OutcomeFailed)
		r.want(t, Granted, tickClaim("a", "r2", 2))
		fresh := NextAttemptID("r1")
		for range 2 {
			if got := must(r.led.Rerun(t.Context(), "a", "r1")); got != fresh {
				t.Fatalf("rerun is %s, want %s", got, fresh)
			}
		}
		if l := must(r.led.InFlight(t.Context(), "a")); len(l) != 2 {
			t.Fatalf("in flight: %+v", l)
		}
		if a := r.want(t, JobBusy, pendingClaim("a", fresh)); a.Detail != "r2" {
			t.Errorf("held by %q", a.Detail)
		}
		r.settle(t, Settled, "a", "r2", jobs.OutcomeSucceeded)
		refused("a", fresh, ErrRefused) // it waits
		a := r.want(t, Granted, pendingClaim("a", fresh))
		if a.Run.Attempt != 2 || a.Run.Tick != noon+1000 || a.Run.Trigger != "rerun" || a.Run.Prev != 0 || a.Run.Request != "" {
			t.Errorf("granted %+v", a.Run)
		}
		must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: fresh}}))
		must(r.led.Rerun(t.Context(), "a", "r1")) // goes on under another id
		r.want(t, Granted, pendingClaim("a", NextAttemptID(fresh)))
		must(r.led.Rerun(t.Context(), "a", "r1"))
		r.settle(t, Settled, "a", NextAttemptID(fresh), jobs.OutcomeSucceeded)
		must(r.led.Rerun(t.Context(), "a", "r1"))
		if l := r.open(t, "a"); l != nil {
			t.Fatalf("in flight: %+v", l)
		}
		must(r.led.Rerun(t.Context(), "a", NextAttemptID(fresh))) // and now a third
		r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", NextAttemptID(NextAttemptID(fresh))))
		r.tale(t, "a", "failed 1", "succeeded 2", "succeeded 1 #2", "succeeded 1 #3")
		r.sound(t)
	})
}

// An attempt's number is given once, also when the cursor was set back in between.
func TestRerunCountsAllAttempts(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		back := Rewind{Job: "a", Digest: "d-second", From: noon + 2000, To: noon + 1000}
		must(r.led.Rewind(t.Context(), r.now, back))
		if _, err := r.led.Rerun(t.Context(), "a", "a-1"); !errors.Is(err, ErrRefused) {
			t.Errorf("its tick is still to come: %v", err)
		}
		if a := r.want(t, Granted, attempts(3, tickClaim("a", "r2", 1))); a.Run.Attempt != 2 {
			t.Errorf("attempt %d", a.Run.Attempt)
		}
		if _, err := r.led.Rerun(t.Context(), "a", "a-1"); !errors.Is(err, ErrRefused) {
			t.Errorf("another attempt runs: %v", err)
		}
		r.reap(t, "a", "r2")
		if _, err := r.led.Rerun(t.Context(), "a", "a-1"); !errors.Is(err, ErrRefused) {
			t.Errorf("another attempt waits: %v", err)
		}
		r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", NextAttemptID("r2")))
		fresh := must(r.led.Rerun(t.Context(), "a", "a-1"))
		if a := r.want(t, Granted, pendingClaim("a", fresh)); a.Run.Attempt != 4 {
			t.Errorf("attempt %d", a.Run.Attempt)
		}
		r.settle(t, Settled, "a", fresh, jobs.OutcomeSucceeded)
		r.tale(t, "a", "succeeded 1", "superseded 1-0 x0 rewound", "abandoned 1 #2", "succeeded 1 #3", "succeeded 1 #4")
		r.sound(t)
	})
}

// The attempts of a run by hand have numbers of their own too, whichever of its shards ran again
// before it did as a whole.
func TestRerunOfAShardedRunByHand(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 500*time.Millisecond)
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "hand"}))
		r.want(t, Opened, sharded(2, pendingClaim("a", "hand")))
		for shard := range 2 {
			r.want(t, Granted, shardClaim("a", "hand", shard))
			r.settle(t, Settled, "a", ShardRun("hand", shard), jobs.OutcomeFailed)
		}
		again := must(r.led.Rerun(t.Context(), "a", ShardRun("hand", 1)))
		if _, err := r.led.Rerun(t.Context(), "a", "hand"); !errors.Is(err, ErrRefused) {
			t.Errorf("a shard of the run waits: %v", err)
		}
		if a := r.want(t, Granted, shardAgain("a", again)); a.Run.Attempt != 2 {
			t.Errorf("the shard's attempt is %d, want 2", a.Run.Attempt)
		}
		r.settle(t, Settled, "a", again, jobs.OutcomeSucceeded)
		whole := must(r.led.Rerun(t.Context(), "a", "hand"))
		r.want(t, Opened, sharded(2, pendingClaim("a", whole)))
		for shard := range 2 {
			if a := r.want(t, Granted, shardClaim("a", whole, shard)); a.Run.Attempt != 3 {
				t.Errorf("shard %d: attempt %d, want 3", shard, a.Run.Attempt)
			}
			r.settle(t, Settled, "a", ShardRun(whole, shard), jobs.OutcomeSucceeded)
		}
		r.sound(t)
	})
}
