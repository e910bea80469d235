package ledger

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func TestPauseAndResume(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 500*time.Millisecond)
		r.resume(t, "a") // changes nothing
		r.pausedFor(t, "a", Window{})
		r.pause(t, "a", Pause{Author: "ann|x", Reason: "disk\nfull"})
		r.pausedFor(t, "a", Window{From: r.now}) // nothing is due yet
		want := map[string]Pause{"a": {Since: r.now, Author: "ann/x", Reason: "disk full"}}
		if got := must(r.led.Pauses(t.Context(), "a", "b")); !maps.Equal(got, want) {
			t.Errorf("pauses %+v, want %+v", got, want)
		}
		r.resume(t, "a")
		r.pausedFor(t, "a", Window{}) // no tick was in it
		if got := must(r.led.Pauses(t.Context(), "a")); len(got) > 0 {
			t.Errorf("pauses %+v after the end", got)
		}

		r.pass(t, 3*time.Second) // 1 to 3 are due, and unclaimed
		since := noon + 1000
		r.pause(t, "a", Pause{})
		r.pausedFor(t, "a", Window{From: since})
		r.want(t, Stale, tickClaim("a", "r", 1))
		r.pass(t, 2*time.Second)
		r.resume(t, "a")
		r.pausedFor(t, "a", Window{since, r.now})
		r.pass(t, 2*time.Second)
		// Paused once more before anybody accounted for the first pause: 6 and 7 have not started
		// either.
		r.pause(t, "a", Pause{Until: r.now + 2000})
		r.pausedFor(t, "a", Window{since, r.now + 2000})
		r.pause(t, "a", Pause{Until: r.now + 1000}) // another end
		r.pausedFor(t, "a", Window{since, r.now + 1000})
		r.pass(t, 2*time.Second) // over by itself; 9 is due
		r.resume(t, "a")         // and it is too late to end it
		r.pausedFor(t, "a", Window{since, r.now - 1000})
		r.complete(t, jobs.OutcomeSucceeded, passing("a", "r9", 9, paused(1, 8)))
		r.pausedFor(t, "a", Window{})
		r.tale(t, "a", "paused 1-8 x8 paused", "succeeded 9")
		r.sound(t)

		for until, want := range map[int64]error{r.now: ErrRefused, r.now - 1: ErrRefused, r.now + 1: nil} {
			if err := r.led.Pause(t.Context(), "a", Pause{Until: until}); !errors.Is(err, want) {
				t.Errorf("until now%+d: %v", until-r.now, err)
			}
		}
		if err := r.led.Pause(t.Context(), "nobody", Pause{}); !errors.Is(err, ErrUnknownJob) {
			t.Errorf("unknown job: %v", err)
		}
		if err := r.led.Resume(t.Context(), "nobody"); !errors.Is(err, ErrUnknownJob) {
			t.Errorf("unknown job: %v", err)
		}
	})
}

// TestPauseHoldsBackWhatNobodyStarted: runs in flight go on, a run handed back waits for the end,
// and so does the next attempt after a crash; an operator's run starts. Also when runs may overlap.
func TestPauseHoldsBackWhatNobodyStarted(t *testing.T) {
	for _, o := range []jobs.Overlap{jobs.OverlapSkip, jobs.OverlapQueue, jobs.OverlapAllow} {
		t.Run(o.String(), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				for _, job := range []string{"back", "crash", "hand"} {
					r.create(t, job)
				}
				r.pass(t, 1500*time.Millisecond)
				for _, job := range []string{"back", "crash", "hand"} {
					c := with(o, tickClaim(job, job+"-1", 1))
					c.Attempts = 2
					r.want(t, Granted, c)
					r.pause(t, job, Pause{Until: r.now + 60_000})
				}
				r.settle(t, Settled, "hand", "hand-1", jobs.OutcomeFailed)
				must(r.led.Unclaim(t.Context(), []Return{{Job: "back", Run: "back-1"}}))
				r.pass(t, 2*ttl)
				must(r.led.Reap(t.Context(), r.now, r.epoch(), []Run{{Job: "crash", ID: "crash-1"}}))
				for _, job := range []string{"back", "crash"} {
					if a := r.want(t, JobBusy, with(o, pendingClaim(job, NextAttemptID(job+"-1")))); a.Detail != "a pause" {
						t.Errorf("%s: %+v", job, a)
					}
				}
				must(r.led.Trigger(t.Context(), "hand", Trigger{Run: "t"}))
				fresh := must(r.led.Rerun(t.Context(), "hand", "hand-1"))
				for _, run := range []string{"t", fresh} {
					r.complete(t, jobs.OutcomeSucceeded, with(o, pendingClaim("hand", run)))
				}
				r.clock(t, (noon+500)*1000, "aaaaaaaaaaaa") // a step back to before the pause does not end it
				r.pass(t, 30*time.Second)
				r.want(t, JobBusy, with(o, pendingClaim("back", NextAttemptID("back-1"))))
				r.pass(t, 60*time.Second)
				for _, job := range []string{"back", "crash"} {
					r.complete(t, jobs.OutcomeSucceeded, with(o, pendingClaim(job, NextAttemptID(job+"-1"))))
				}
				r.sound(t)
			})
		})
	}
}

// The clock steps back, and a definition comes whose next tick lies before the pause's beginning.
func TestDefinitionOfAPausedJob(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 900*time.Millisecond)
		r.pause(t, "a", Pause{})
		r.pausedFor(t, "a", Window{From: noon + 900})
		r.clock(t, (noon+500)*1000, "aaaaaaaaaaaa")
		d := Definition{Job: "a", Digest: "d-new", Text: []byte("{}"), Cursor: noon + 600, WasDigest: "d-second", WasCursor: noon + 1000}
		if got := must(r.led.Define(t.Context(), r.now, []Definition{d})); got[0].Status != "replaced" {
			t.Fatalf("%+v", got)
		}
		r.pausedFor(t, "a", Window{From: noon + 600})
		r.pass(t, time.Second)
		r.want(t, Stale, Claim{Job: "a", Digest: "d-new", Run: "r", TTL: ttl, From: noon + 600, Tick: noon + 600, Next: noon + 700})
	})
}
