package ledger

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// TestRemoveLeavesNothing: nothing of a removed job stays, but for the name in the followers of the
// one that it followed; other jobs keep all of theirs.
func TestRemoveLeavesNothing(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx := t.Context()
		r.create(t, "other")
		r.create(t, "gone")
		r.pass(t, time.Minute)
		fill := func(job string) {
			r.want(t, Granted, tickClaim(job, job+"-1", 1))
			must(r.led.Settle(ctx, []Report{{Job: job, Run: job + "-1", Outcome: jobs.OutcomeFailed, Ended: r.now, Output: []byte("text")}}))
			must(r.led.Trigger(ctx, job, Trigger{Run: job + "-t", Payload: []byte("p")}))
			r.complete(t, jobs.OutcomeSucceeded, pendingClaim(job, job+"-t"))
			must(r.led.Trigger(ctx, job, Trigger{Run: job + "-u"}))
			must(r.led.Rerun(ctx, job, job+"-1"))
			r.want(t, Opened, with(jobs.OverlapAllow, sharded(2, tickClaim(job, job+"-2", 2))))
			must(r.led.Cancel(ctx, job, job+"-2", "ann", ""))
			r.pause(t, job, Pause{})
			if err := r.led.Follow(ctx, job, "x"); err != nil {
				t.Fatal(err)
			}
		}
		fill("other")
		before := dump(t, r.client)
		fill("gone")
		r.want(t, RecordedOnly, passing("gone", "r", 0, paused(3, 5)))
		if err := r.led.Remove(ctx, "gone"); err != nil {
			t.Fatal(err)
		}
		after := dump(t, r.client)
		outbox := r.led.keys[0].outbox // its events stay
		if !strings.Contains(after[outbox], "|gone|") {
			t.Error("it told nothing")
		}
		delete(after, outbox)
		delete(after, r.led.keys[0].recent) // it names jobs, also deleted ones
		delete(before, r.led.keys[0].recent)
		k := r.led.keys[0]
		for _, key := range []string{k.jobs, k.defs, k.due, k.anew} { // it stood there before
			before[key] = strings.Join(keepIf(strings.Split(before[key], "\n"), func(s string) bool { return !strings.Contains(s, `"gone`) }), "\n")
		}
		if wrong := differences(before, after); len(wrong) > 0 {
			t.Errorf("what stays differs: %s", strings.Join(wrong, "\n"))
		}
		if err := r.led.Remove(ctx, "gone"); !errors.Is(err, ErrUnknownJob) {
			t.Errorf("removed again: %v", err)
		}
		r.sound(t)
	})
}

// An unused job is removed in the definition that the caller names, and never one with a history or
// a run.
func TestRemoveUnused(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		stays := func(why, digest string) {
			t.Helper()
			if err := r.led.RemoveUnused(t.Context(), "a", digest); err != nil {
				t.Fatalf("%s: %v", why, err)
			}
			if _, err := r.led.Job(t.Context(), "a"); err != nil {
				t.Errorf("%s: %v", why, err)
			}
		}
		r.create(t, "a")
		stays("another definition", "d-other")
		r.pass(t, time.Minute)
		r.want(t, Granted, tickClaim("a", "r1", 1))
		stays("it runs", "d-second")
		r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
		stays("it has run", "d-second")
		r.create(t, "b")
		for range 2 {
			if err := r.led.RemoveUnused(t.Context(), "b", "d-second"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.led.Job(t.Context(), "b"); !errors.Is(err, ErrUnknownJob) {
			t.Errorf("it stays: %v", err)
		}
		r.sound(t)
	})
}

func TestRemoveWaitsForWhatRuns(t *testing.T) {
	for _, o := range []jobs.Overlap{jobs.OverlapSkip, jobs.OverlapAllow} {
		t.Run(o.String(), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, time.Minute)
				first := r.want(t, Granted, with(o, tickClaim("a", "r1", 1))).Token
				if err := r.led.Remove(t.Context(), "a"); !errors.Is(err, ErrRefused) {
					t.Fatalf("while it runs: %v", err)
				}
				r.settle(t, Settled, "a", "r1", jobs.OutcomeSucceeded)
				if err := r.led.Remove(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
				r.settle(t, NoSuchRun, "a", "r1", jobs.OutcomeSucceeded)
				r.pass(t, time.Second)
				r.create(t, "a") // another job of that name
				if a := r.want(t, Granted, tickClaim("a", "r2", 1)); a.Token <= first {
					t.Errorf("token %d after %d", a.Token, first)
				}
			})
		})
	}
}

// A unique key names a run of the removed job, pending or ended: for a new job of that name it
// names another run, which starts.
func TestRemoveForgetsUniqueKeys(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx := t.Context()
		r.create(t, "a")
		waits := must(r.led.Trigger(ctx, "a", Trigger{Unique: "waits", At: r.now + 60_000}))
		ended := must(r.led.Trigger(ctx, "a", Trigger{Unique: "ended"}))
		r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", ended))
		if err := r.led.Remove(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		r.create(t, "a")
		for key, id := range map[string]string{"waits": waits, "ended": ended} {
			if got := must(r.led.Trigger(ctx, "a", Trigger{Unique: key})); got != id {
				t.Errorf("%s is run %s, and was %s", key, got, id)
			}
			r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", id))
		}
		r.sound(t)
	})
}
