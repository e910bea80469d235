package ledger_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

func TestCancel(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		cancel := func(job, run string, want ledger.Status, refused error) {
			t.Helper()
			if got, err := operate.Cancel(t.Context(), r.led, job, run, "ann|b", "too\nlong"); got != want || !errors.Is(err, refused) {
				t.Fatalf("cancel of %s: %s, %v, want %s, %v", run, got, err, want, refused)
			}
		}
		r.create(t, "a")
		r.create(t, "b")
		r.pass(t, time.Minute)
		cancel("a", "r1", "", ledger.ErrUnknownRun)
		cancel("nobody", "r1", "", ledger.ErrUnknownRun)

		r.want(t, claim.Granted, tickClaim("a", "r1", 1))
		cancel("b", "r1", "", ledger.ErrUnknownRun) // another job's
		cancel("a", "r1", operate.Flagged, nil)
		cancel("a", "r1", operate.Flagged, nil)
		want := ledger.Cancel{Run: "r1", Author: "ann/b", Reason: "too long"}
		if found := must(query.NewScanner(r.led).Scan(t.Context(), r.now, 0)).Cancels; len(found) != 1 || found[0] != want {
			t.Errorf("a look finds %+v, want %+v", found, want)
		}
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeCancelled)
		if left := must(query.Cancels(t.Context(), r.led)); len(left) != 0 {
			t.Errorf("the flag stays: %+v", left)
		}
		cancel("a", "r1", operate.Cancelled, nil) // repeated
		r.complete(t, jobs.OutcomeSucceeded, tickClaim("a", "r2", 2))
		cancel("a", "r2", "", ledger.ErrRefused)

		must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "t", Payload: []byte("p")}))
		cancel("b", "t", "", ledger.ErrUnknownRun)
		cancel("a", "t", operate.Cancelled, nil)
		cancel("a", "t", operate.Cancelled, nil)
		r.want(t, claim.Stale, pendingClaim("a", "t"))
		row := r.rows(t, "a")[2]
		if row.Run != "t" || row.Request != "t" || row.Reason != "cancelled by ann/b: too long" || row.Tries != 0 || row.Token != 0 || row.At != r.now {
			t.Errorf("row is %+v", row)
		}
		if _, payload, _ := query.Kept(t.Context(), r.led, "a", "t"); string(payload) != "p" {
			t.Errorf("payload %q", payload)
		}
		must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "t"})) // it has been
		if l := r.open(t, "a"); l != nil {
			t.Errorf("in flight: %+v", l)
		}
		if must(operate.Cancel(t.Context(), r.led, "a", must(operate.Rerun(t.Context(), r.led, "a", "r2")), "", "")); r.rows(t, "a")[3].Reason != "cancelled by somebody" {
			t.Errorf("row is %+v", r.rows(t, "a")[3])
		}
		r.tale(t, "a", "cancelled 1", "succeeded 2", "cancelled by hand", "cancelled 2 #2")
		r.sound(t)
	})
}

// Attempts that a crash left, and runs handed back: cancelled, they let go of the job.
func TestCancelOfWhatHoldsTheJob(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, claim.Granted, attempts(2, tickClaim("a", "r1", 1)))
		r.reap(t, "a", "r1")
		must(operate.Cancel(t.Context(), r.led, "a", ledger.NextAttemptID("r1"), "ann", ""))
		r.want(t, claim.Granted, attempts(2, tickClaim("a", "r2", 2)))
		must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: "a", Run: "r2"}}))
		must(operate.Cancel(t.Context(), r.led, "a", ledger.NextAttemptID("r2"), "ann", ""))
		r.sound(t)
		r.want(t, claim.Granted, attempts(2, tickClaim("a", "r3", 3)))
		must(operate.Cancel(t.Context(), r.led, "a", "r3", "ann", ""))
		r.reap(t, "a", "r3") // its node is gone: there is no other attempt
		r.tale(t, "a", "abandoned 1", "cancelled 1 #2", "cancelled 2", "abandoned 3")
		if l := r.open(t, "a"); l != nil || r.entry(t, "a").HolderRun != "" {
			t.Errorf("in flight: %+v", l)
		}
		r.sound(t)
	})
}

// A pending attempt is cancelled. After a crash the job was busy until then, as if the attempt had
// run, so that of the ticks behind it the latest runs; an operator's attempt sends no event of its
// tick, whose end was delivered before.
func TestCancelOfWhatWaits(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.pass(t, 1500*time.Millisecond)
		queued := func(c claim.Claim) claim.Claim { return with(jobs.OverlapQueue, attempts(2, c)) }
		r.want(t, claim.Granted, queued(tickClaim("a", "r1", 1)))
		granted := r.now
		r.reap(t, "a", "r1")
		r.pass(t, time.Minute)
		must(operate.Cancel(t.Context(), r.led, "a", ledger.NextAttemptID("r1"), "ann", ""))
		if e := r.entry(t, "a"); e.Busy != (ledger.Window{granted, r.now}) {
			t.Errorf("busy %+v, want from the grant at %d to %d", e.Busy, granted, r.now)
		}
		last := (r.now - noon) / 1000
		r.want(t, claim.Stale, queued(passing("a", "r2", last, late(2, last-1))))
		r.complete(t, jobs.OutcomeSucceeded, queued(passing("a", "r2", last, overlapped(2, last-1))))
		r.relayAll(t)
		must(operate.Cancel(t.Context(), r.led, "a", must(operate.Rerun(t.Context(), r.led, "a", "r2")), "ann", ""))
		if told := r.events(t); len(told) != 0 {
			t.Errorf("the followers are told %+v", told)
		}
		r.sound(t)
	})
}

func TestPauseAndResume(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 500*time.Millisecond)
		r.resume(t, "a") // changes nothing
		r.pausedFor(t, "a", ledger.Window{})
		r.pause(t, "a", ledger.Pause{Author: "ann|x", Reason: "disk\nfull"})
		r.pausedFor(t, "a", ledger.Window{From: r.now}) // nothing is due yet
		want := map[string]ledger.Pause{"a": {Since: r.now, Author: "ann/x", Reason: "disk full"}}
		if got := must(operate.Pauses(t.Context(), r.led, "a", "b")); !maps.Equal(got, want) {
			t.Errorf("pauses %+v, want %+v", got, want)
		}
		r.resume(t, "a")
		r.pausedFor(t, "a", ledger.Window{}) // no tick was in it
		if got := must(operate.Pauses(t.Context(), r.led, "a")); len(got) > 0 {
			t.Errorf("pauses %+v after the end", got)
		}

		r.pass(t, 3*time.Second) // 1 to 3 are due, and unclaimed
		since := noon + 1000
		r.pause(t, "a", ledger.Pause{})
		r.pausedFor(t, "a", ledger.Window{From: since})
		r.want(t, claim.Stale, tickClaim("a", "r", 1))
		r.pass(t, 2*time.Second)
		r.resume(t, "a")
		r.pausedFor(t, "a", ledger.Window{since, r.now})
		r.pass(t, 2*time.Second)
		// Paused once more before anybody accounted for the first pause: 6 and 7 have not started
		// either.
		r.pause(t, "a", ledger.Pause{Until: r.now + 2000})
		r.pausedFor(t, "a", ledger.Window{since, r.now + 2000})
		r.pause(t, "a", ledger.Pause{Until: r.now + 1000}) // another end
		r.pausedFor(t, "a", ledger.Window{since, r.now + 1000})
		r.pass(t, 2*time.Second) // over by itself; 9 is due
		r.resume(t, "a")         // and it is too late to end it
		r.pausedFor(t, "a", ledger.Window{since, r.now - 1000})
		r.complete(t, jobs.OutcomeSucceeded, passing("a", "r9", 9, paused(1, 8)))
		r.pausedFor(t, "a", ledger.Window{})
		r.tale(t, "a", "paused 1-8 x8 paused", "succeeded 9")
		r.sound(t)

		for until, want := range map[int64]error{r.now: ledger.ErrRefused, r.now - 1: ledger.ErrRefused, r.now + 1: nil} {
			if err := operate.Pause(t.Context(), r.led, "a", ledger.Pause{Until: until}); !errors.Is(err, want) {
				t.Errorf("until now%+d: %v", until-r.now, err)
			}
		}
		if err := operate.Pause(t.Context(), r.led, "nobody", ledger.Pause{}); !errors.Is(err, ledger.ErrUnknownJob) {
			t.Errorf("unknown job: %v", err)
		}
		if err := operate.Resume(t.Context(), r.led, "nobody"); !errors.Is(err, ledger.ErrUnknownJob) {
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
					r.want(t, claim.Granted, c)
					r.pause(t, job, ledger.Pause{Until: r.now + 60_000})
				}
				r.settle(t, settle.Settled, "hand", "hand-1", jobs.OutcomeFailed)
				must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: "back", Run: "back-1"}}))
				r.pass(t, 2*ttl)
				must(settle.Reap(t.Context(), r.led, r.now, r.epoch(), []ledger.Run{{Job: "crash", ID: "crash-1"}}))
				for _, job := range []string{"back", "crash"} {
					if a := r.want(t, claim.JobBusy, with(o, pendingClaim(job, ledger.NextAttemptID(job+"-1")))); a.Detail != "a pause" {
						t.Errorf("%s: %+v", job, a)
					}
				}
				must(operate.Trigger(t.Context(), r.led, "hand", operate.TriggerRequest{Run: "t"}))
				fresh := must(operate.Rerun(t.Context(), r.led, "hand", "hand-1"))
				for _, run := range []string{"t", fresh} {
					r.complete(t, jobs.OutcomeSucceeded, with(o, pendingClaim("hand", run)))
				}
				r.clock(t, (noon+500)*1000, "aaaaaaaaaaaa") // a step back to before the pause does not end it
				r.pass(t, 30*time.Second)
				r.want(t, claim.JobBusy, with(o, pendingClaim("back", ledger.NextAttemptID("back-1"))))
				r.pass(t, 60*time.Second)
				for _, job := range []string{"back", "crash"} {
					r.complete(t, jobs.OutcomeSucceeded, with(o, pendingClaim(job, ledger.NextAttemptID(job+"-1"))))
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
		r.pause(t, "a", ledger.Pause{})
		r.pausedFor(t, "a", ledger.Window{From: noon + 900})
		r.clock(t, (noon+500)*1000, "aaaaaaaaaaaa")
		d := define.Definition{Job: "a", Digest: "d-new", Text: []byte("{}"), Cursor: noon + 600, WasDigest: "d-second", WasCursor: noon + 1000}
		if got := must(define.Define(t.Context(), r.led, r.now, []define.Definition{d})); got[0].Status != "replaced" {
			t.Fatalf("%+v", got)
		}
		r.pausedFor(t, "a", ledger.Window{From: noon + 600})
		r.pass(t, time.Second)
		r.want(t, claim.Stale, claim.Claim{Job: "a", Digest: "d-new", Run: "r", TTL: ttl, From: noon + 600, Tick: noon + 600, Next: noon + 700})
	})
}

func TestRerun(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		refused := func(job, run string, want error) {
			t.Helper()
			if got, err := operate.Rerun(t.Context(), r.led, job, run); got != "" || !errors.Is(err, want) {
				t.Fatalf("rerun of %s: %q, %v, want %v", run, got, err, want)
			}
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		refused("nobody", "r1", ledger.ErrUnknownRun)
		refused("a", "r1", ledger.ErrUnknownRun)
		r.want(t, claim.Granted, attempts(2, tickClaim("a", "r1", 1)))
		refused("a", "r1", ledger.ErrRefused) // it runs
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeFailed)
		r.want(t, claim.Granted, tickClaim("a", "r2", 2))
		fresh := ledger.NextAttemptID("r1")
		for range 2 {
			if got := must(operate.Rerun(t.Context(), r.led, "a", "r1")); got != fresh {
				t.Fatalf("rerun is %s, want %s", got, fresh)
			}
		}
		if l := must(query.InFlight(t.Context(), r.led, "a")); len(l) != 2 {
			t.Fatalf("in flight: %+v", l)
		}
		if a := r.want(t, claim.JobBusy, pendingClaim("a", fresh)); a.Detail != "r2" {
			t.Errorf("held by %q", a.Detail)
		}
		r.settle(t, settle.Settled, "a", "r2", jobs.OutcomeSucceeded)
		refused("a", fresh, ledger.ErrRefused) // it waits
		a := r.want(t, claim.Granted, pendingClaim("a", fresh))
		if a.Run.Attempt != 2 || a.Run.Tick != noon+1000 || a.Run.Trigger != "rerun" || a.Run.Prev != 0 || a.Run.Request != "" {
			t.Errorf("granted %+v", a.Run)
		}
		must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: "a", Run: fresh}}))
		must(operate.Rerun(t.Context(), r.led, "a", "r1")) // goes on under another id
		r.want(t, claim.Granted, pendingClaim("a", ledger.NextAttemptID(fresh)))
		must(operate.Rerun(t.Context(), r.led, "a", "r1"))
		r.settle(t, settle.Settled, "a", ledger.NextAttemptID(fresh), jobs.OutcomeSucceeded)
		must(operate.Rerun(t.Context(), r.led, "a", "r1"))
		if l := r.open(t, "a"); l != nil {
			t.Fatalf("in flight: %+v", l)
		}
		must(operate.Rerun(t.Context(), r.led, "a", ledger.NextAttemptID(fresh))) // and now a third
		r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", ledger.NextAttemptID(ledger.NextAttemptID(fresh))))
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
		back := operate.RewindRequest{Job: "a", Digest: "d-second", From: noon + 2000, To: noon + 1000}
		must(operate.Rewind(t.Context(), r.led, r.now, back))
		if _, err := operate.Rerun(t.Context(), r.led, "a", "a-1"); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("its tick is still to come: %v", err)
		}
		if a := r.want(t, claim.Granted, attempts(3, tickClaim("a", "r2", 1))); a.Run.Attempt != 2 {
			t.Errorf("attempt %d", a.Run.Attempt)
		}
		if _, err := operate.Rerun(t.Context(), r.led, "a", "a-1"); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("another attempt runs: %v", err)
		}
		r.reap(t, "a", "r2")
		if _, err := operate.Rerun(t.Context(), r.led, "a", "a-1"); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("another attempt waits: %v", err)
		}
		r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", ledger.NextAttemptID("r2")))
		fresh := must(operate.Rerun(t.Context(), r.led, "a", "a-1"))
		if a := r.want(t, claim.Granted, pendingClaim("a", fresh)); a.Run.Attempt != 4 {
			t.Errorf("attempt %d", a.Run.Attempt)
		}
		r.settle(t, settle.Settled, "a", fresh, jobs.OutcomeSucceeded)
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
		must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "hand"}))
		r.want(t, claim.Opened, sharded(2, pendingClaim("a", "hand")))
		for shard := range 2 {
			r.want(t, claim.Granted, shardClaim("a", "hand", shard))
			r.settle(t, settle.Settled, "a", claim.ShardRun("hand", shard), jobs.OutcomeFailed)
		}
		again := must(operate.Rerun(t.Context(), r.led, "a", claim.ShardRun("hand", 1)))
		if _, err := operate.Rerun(t.Context(), r.led, "a", "hand"); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("a shard of the run waits: %v", err)
		}
		if a := r.want(t, claim.Granted, shardAgain("a", again)); a.Run.Attempt != 2 {
			t.Errorf("the shard's attempt is %d, want 2", a.Run.Attempt)
		}
		r.settle(t, settle.Settled, "a", again, jobs.OutcomeSucceeded)
		whole := must(operate.Rerun(t.Context(), r.led, "a", "hand"))
		r.want(t, claim.Opened, sharded(2, pendingClaim("a", whole)))
		for shard := range 2 {
			if a := r.want(t, claim.Granted, shardClaim("a", whole, shard)); a.Run.Attempt != 3 {
				t.Errorf("shard %d: attempt %d, want 3", shard, a.Run.Attempt)
			}
			r.settle(t, settle.Settled, "a", claim.ShardRun(whole, shard), jobs.OutcomeSucceeded)
		}
		r.sound(t)
	})
}

func TestRewind(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		rewind := func(from, to int64, want ledger.Status, refused error) {
			t.Helper()
			got, err := operate.Rewind(t.Context(), r.led, r.now, operate.RewindRequest{Job: "a", Digest: "d-second", From: noon + from*1000, To: noon + to*1000})
			if got != want || !errors.Is(err, refused) {
				t.Fatalf("from %d to %d: %s, %v, want %s, %v", from, to, got, err, want, refused)
			}
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		for s := int64(1); s <= 5; s++ {
			r.runOne(t, "a", s)
		}
		rewind(5, 2, operate.Elsewhere, nil)
		rewind(6, 6, "", ledger.ErrRefused) // it stands there
		rewind(6, 7, "", ledger.ErrRefused)
		rewind(6, 0, "", ledger.ErrRefused) // before the beginning
		if _, err := operate.Rewind(t.Context(), r.led, r.now+1001, operate.RewindRequest{Job: "a", Digest: "d-second", From: noon + 6000, To: noon + 1000}); !errors.Is(err, ledger.ErrClock) {
			t.Errorf("off by more than a second: %v", err)
		}
		if got := must(operate.Rewind(t.Context(), r.led, r.now, operate.RewindRequest{Job: "a", Digest: "d-other", From: noon + 6000, To: noon + 1000})); got != operate.Elsewhere {
			t.Errorf("another definition: %s", got)
		}
		if _, err := operate.Rewind(t.Context(), r.led, r.now, operate.RewindRequest{Job: "nobody", To: 1}); !errors.Is(err, ledger.ErrUnknownJob) {
			t.Errorf("unknown job: %v", err)
		}
		rewind(6, 3, operate.Rewound, nil)
		rewind(6, 3, operate.Elsewhere, nil) // repeated
		r.sound(t)
		if e := r.entry(t, "a"); e.Cursor != noon+3000 || e.ReattemptUntil != noon+6000 || e.Reattempt != 2 {
			t.Errorf("the entry is %+v", e)
		}
		if found := must(query.NewScanner(r.led).Scan(t.Context(), noon+3001, 0)).Late; len(found) != 1 || found[0].Cursor != noon+3000 {
			t.Errorf("due: %+v", found)
		}
		r.want(t, claim.Stale, tickClaim("a", "a-3", 3)) // a copy of the claim from before: its run ended
		for s := int64(3); s <= 4; s++ {
			a := r.want(t, claim.Granted, tickClaim("a", ledger.NextAttemptID(string(rune('p'+s))), s))
			if again := r.want(t, claim.Granted, tickClaim("a", ledger.NextAttemptID(string(rune('p'+s))), s)); a.Run.Attempt != 2 || again.Run.Attempt != 2 {
				t.Errorf("tick %d: attempts %d and %d", s, a.Run.Attempt, again.Run.Attempt)
			}
			rewind(s+1, 1, "", ledger.ErrRefused) // a run holds the job
			r.settle(t, settle.Settled, "a", ledger.NextAttemptID(string(rune('p'+s))), jobs.OutcomeFailed)
		}
		rewind(5, 2, operate.Rewound, nil) // further, before it has come to where it was
		if e := r.entry(t, "a"); e.ReattemptUntil != noon+6000 || e.Reattempt != 3 {
			t.Errorf("the entry is %+v", e)
		}
		for s, want := range map[int64]int{2: 3} {
			if a := r.want(t, claim.Granted, tickClaim("a", "r2", s)); a.Run.Attempt != want {
				t.Errorf("tick %d: attempt %d", s, a.Run.Attempt)
			}
		}
		r.settle(t, settle.Settled, "a", "r2", jobs.OutcomeSucceeded)
		if a := r.want(t, claim.Granted, passing("a", "r6", 6, late(3, 5))); a.Run.Attempt != 1 || r.entry(t, "a").ReattemptUntil != 0 {
			t.Errorf("behind it: attempt %d, %+v", a.Run.Attempt, r.entry(t, "a"))
		}
		r.settle(t, settle.Settled, "a", "r6", jobs.OutcomeSucceeded)
		r.tale(t, "a", "succeeded 1", "succeeded 2", "succeeded 3", "succeeded 4", "succeeded 5", "superseded 3-0 x0 rewound", "failed 3 #2", "failed 4 #2",
			"superseded 2-0 x0 rewound", "succeeded 2 #3", "missed 3-5 x3 late", "succeeded 6")
		r.sound(t)
	})
}

// A run in flight, or pending again, may need an attempt's number; an operator's run does not.
func TestRewindWaitsForWhatIsInFlight(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		back := func() error {
			_, err := operate.Rewind(t.Context(), r.led, r.now, operate.RewindRequest{Job: "a", Digest: "d-second", From: noon + 3000, To: noon + 1000})
			return err
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		r.want(t, claim.Granted, with(jobs.OverlapAllow, attempts(2, tickClaim("a", "r2", 2)))) // holds nothing
		if err := back(); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("while it runs: %v", err)
		}
		r.reap(t, "a", "r2")
		if err := back(); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("while another attempt waits: %v", err)
		}
		must(operate.Cancel(t.Context(), r.led, "a", ledger.NextAttemptID("r2"), "ann", ""))
		fresh := must(operate.Rerun(t.Context(), r.led, "a", "a-1"))
		if err := back(); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("while an operator's waits: %v", err)
		}
		must(operate.Cancel(t.Context(), r.led, "a", fresh, "ann", ""))
		must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "t"}))
		if err := back(); err != nil {
			t.Errorf("while a run by hand waits: %v", err)
		}
		if a := r.want(t, claim.Granted, tickClaim("a", "r1", 1)); a.Run.Attempt != 3 {
			t.Errorf("attempt %d, after one that was cancelled before it ran", a.Run.Attempt)
		}
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeSucceeded)
		r.want(t, claim.Opened, with(jobs.OverlapAllow, sharded(2, tickClaim("a", "open", 2))))
		for i := range 2 {
			if err := back(); !errors.Is(err, ledger.ErrRefused) {
				t.Errorf("while a tick is open, before shard %d: %v", i, err)
			}
			r.complete(t, jobs.OutcomeSucceeded, with(jobs.OverlapAllow, shardClaim("a", "open", i)))
		}
		if err := back(); err != nil {
			t.Errorf("when the tick has closed: %v", err)
		}
		r.sound(t)
	})
}

// A schedule that has no more ticks can be set back as well, and history that was trimmed is no
// place to go.
func TestRewindOfAnEndedSchedule(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		for s := int64(1); s <= 33; s++ {
			c := tickClaim("a", ledger.NextAttemptID(time.Duration(s).String()), s)
			if s == 33 {
				c.Next = 0
			}
			r.complete(t, jobs.OutcomeSucceeded, c)
		}
		base := r.entry(t, "a").Base
		if base <= noon+1000 {
			t.Fatal("nothing was trimmed")
		}
		to := operate.RewindRequest{Job: "a", Digest: "d-second", To: base - 1000}
		if _, err := operate.Rewind(t.Context(), r.led, r.now, to); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("to before the base: %v", err)
		}
		to.To = noon + 32_000
		if got := must(operate.Rewind(t.Context(), r.led, r.now, to)); got != operate.Rewound {
			t.Fatalf("%s", got)
		}
		if e := r.entry(t, "a"); e.ReattemptUntil != noon+33_001 || e.Reattempt != 2 {
			t.Errorf("the entry is %+v", e)
		}
		r.sound(t)
	})
}

// A job that followed another one gets a schedule: its ticks from then on can be run again, and
// none before.
func TestRewindOfAJobThatFollowed(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx := t.Context()
		must(define.Define(ctx, r.led, r.now, []define.Definition{{Job: "a", Digest: "d-after", Text: []byte("{}")}}))
		got := must(define.Define(ctx, r.led, r.now, []define.Definition{{Job: "a", Digest: "d-second", Text: []byte("{}"), WasDigest: "d-after", Cursor: noon + 1000}}))
		if got[0].Status != "replaced" {
			t.Fatalf("%+v", got)
		}
		r.pass(t, time.Minute)
		for s := int64(1); s <= 3; s++ {
			r.runOne(t, "a", s)
		}
		to := operate.RewindRequest{Job: "a", Digest: "d-second", From: noon + 4000}
		if _, err := operate.Rewind(ctx, r.led, r.now, to); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("to before its schedule: %v", err)
		}
		to.To = noon + 1000
		if got := must(operate.Rewind(ctx, r.led, r.now, to)); got != operate.Rewound {
			t.Errorf("to the first tick of its schedule: %s", got)
		}
		if a := r.want(t, claim.Granted, tickClaim("a", "r1", 1)); a.Run.Attempt != 2 {
			t.Errorf("attempt %d", a.Run.Attempt)
		}
		r.sound(t)
	})
}

// A job that was created by a clock which was taken back begins in the future. It can be set back
// to where it would have begun.
func TestRewindBeforeABeginningAhead(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: "a", Digest: "d-second", Text: []byte("{}"), Cursor: noon + 3_600_000}}))
		back := operate.RewindRequest{Job: "a", Digest: "d-second", From: noon + 3_600_000, To: noon - 26*365*86_400_000}
		if _, err := operate.Rewind(t.Context(), r.led, r.now, back); !errors.Is(err, ledger.ErrRefused) {
			t.Errorf("to 26 years ago: %v", err)
		}
		back.To = noon + 1000
		if got := must(operate.Rewind(t.Context(), r.led, r.now, back)); got != operate.Rewound {
			t.Fatal(got)
		}
		r.pass(t, time.Second)
		r.runOne(t, "a", 1)
		r.sound(t)
	})
}

// TestRemoveLeavesNothing: nothing of a removed job stays, but for the name in the followers of the
// one that it followed; other jobs keep all of theirs.
func TestRemoveLeavesNothing(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx := t.Context()
		r.create(t, "other")
		r.create(t, "gone")
		r.pass(t, time.Minute)
		fill := func(job string) {
			r.want(t, claim.Granted, tickClaim(job, job+"-1", 1))
			must(settle.Settle(ctx, r.led, []settle.Report{{Job: job, Run: job + "-1", Outcome: jobs.OutcomeFailed, Ended: r.now, Output: []byte("text")}}))
			must(operate.Trigger(ctx, r.led, job, operate.TriggerRequest{Run: job + "-t", Payload: []byte("p")}))
			r.complete(t, jobs.OutcomeSucceeded, pendingClaim(job, job+"-t"))
			must(operate.Trigger(ctx, r.led, job, operate.TriggerRequest{Run: job + "-u"}))
			must(operate.Rerun(ctx, r.led, job, job+"-1"))
			r.want(t, claim.Opened, with(jobs.OverlapAllow, sharded(2, tickClaim(job, job+"-2", 2))))
			must(operate.Cancel(ctx, r.led, job, job+"-2", "ann", ""))
			r.pause(t, job, ledger.Pause{})
			if err := follow.Follow(ctx, r.led, 0, job, "x"); err != nil {
				t.Fatal(err)
			}
		}
		fill("other")
		before := dump(t, r.client)
		fill("gone")
		r.want(t, claim.RecordedOnly, passing("gone", "r", 0, paused(3, 5)))
		if err := operate.Remove(ctx, r.led, "gone"); err != nil {
			t.Fatal(err)
		}
		after := dump(t, r.client)
		outbox := r.led.Keys[0].Outbox // its events stay
		if !strings.Contains(after[outbox], "|gone|") {
			t.Error("it told nothing")
		}
		delete(after, outbox)
		delete(after, r.led.Keys[0].Recent) // it names jobs, also deleted ones
		delete(before, r.led.Keys[0].Recent)
		k := r.led.Keys[0]
		for _, key := range []string{k.Jobs, k.Defs, k.Due, k.Anew} { // it stood there before
			before[key] = strings.Join(keepIf(strings.Split(before[key], "\n"), func(s string) bool { return !strings.Contains(s, `"gone`) }), "\n")
		}
		if wrong := differences(before, after); len(wrong) > 0 {
			t.Errorf("what stays differs: %s", strings.Join(wrong, "\n"))
		}
		if err := operate.Remove(ctx, r.led, "gone"); !errors.Is(err, ledger.ErrUnknownJob) {
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
			if err := operate.RemoveUnused(t.Context(), r.led, "a", digest); err != nil {
				t.Fatalf("%s: %v", why, err)
			}
			if _, err := query.Job(t.Context(), r.led, "a"); err != nil {
				t.Errorf("%s: %v", why, err)
			}
		}
		r.create(t, "a")
		stays("another definition", "d-other")
		r.pass(t, time.Minute)
		r.want(t, claim.Granted, tickClaim("a", "r1", 1))
		stays("it runs", "d-second")
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeSucceeded)
		stays("it has run", "d-second")
		r.create(t, "b")
		for range 2 {
			if err := operate.RemoveUnused(t.Context(), r.led, "b", "d-second"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := query.Job(t.Context(), r.led, "b"); !errors.Is(err, ledger.ErrUnknownJob) {
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
				first := r.want(t, claim.Granted, with(o, tickClaim("a", "r1", 1))).Token
				if err := operate.Remove(t.Context(), r.led, "a"); !errors.Is(err, ledger.ErrRefused) {
					t.Fatalf("while it runs: %v", err)
				}
				r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeSucceeded)
				if err := operate.Remove(t.Context(), r.led, "a"); err != nil {
					t.Fatal(err)
				}
				r.settle(t, ledger.NoSuchRun, "a", "r1", jobs.OutcomeSucceeded)
				r.pass(t, time.Second)
				r.create(t, "a") // another job of that name
				if a := r.want(t, claim.Granted, tickClaim("a", "r2", 1)); a.Token <= first {
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
		waits := must(operate.Trigger(ctx, r.led, "a", operate.TriggerRequest{Unique: "waits", At: r.now + 60_000}))
		ended := must(operate.Trigger(ctx, r.led, "a", operate.TriggerRequest{Unique: "ended"}))
		r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", ended))
		if err := operate.Remove(ctx, r.led, "a"); err != nil {
			t.Fatal(err)
		}
		r.create(t, "a")
		for key, id := range map[string]string{"waits": waits, "ended": ended} {
			if got := must(operate.Trigger(ctx, r.led, "a", operate.TriggerRequest{Unique: key})); got != id {
				t.Errorf("%s is run %s, and was %s", key, got, id)
			}
			r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", id))
		}
		r.sound(t)
	})
}

// TestTriggerIsOneRun: a repeated request is one run, whether it waits, runs, was handed back or
// has ended.
func TestTriggerIsOneRun(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		payload := []byte("{\"a\":\"b|c\"}\n\x00\xff")
		trigger := func(when string, pending int) {
			t.Helper()
			must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "t1", Payload: payload}))
			if n := len(keepIf(must(query.InFlight(t.Context(), r.led, "a")), ledger.Run.Pending)); n != pending {
				t.Fatalf("%s: %d pending runs, want %d", when, n, pending)
			}
		}
		trigger("asked for", 1)
		trigger("asked for again", 1)
		r.want(t, claim.Granted, tickClaim("a", "r1", 1)) // a pending trigger does not hold the job
		r.want(t, claim.JobBusy, pendingClaim("a", "t1"))
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeSucceeded)
		if a := r.want(t, claim.Granted, pendingClaim("a", "t1")); string(a.Run.Payload) != string(payload) || a.Run.Trigger != "manual" || a.Run.Prev != 0 {
			t.Errorf("granted %+v", a)
		}
		trigger("running", 0)
		f1 := ledger.NextAttemptID("t1")
		must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: "a", Run: "t1"}}))
		trigger("handed back", 1)
		r.want(t, claim.Granted, pendingClaim("a", f1))
		trigger("running under another id", 0)
		r.settle(t, settle.Settled, "a", f1, jobs.OutcomeSucceeded)
		trigger("ended", 0)
		r.settle(t, ledger.NoSuchRun, "a", "t1", jobs.OutcomeFailed) // burnt, although its request is in the books
		r.sound(t)
		for _, c := range []struct {
			job  string
			size int
			want error
		}{{"nobody", 0, ledger.ErrUnknownJob}, {"a", operate.PayloadMax + 1, ledger.ErrRefused}, {"a", operate.PayloadMax, nil}} {
			if _, err := operate.Trigger(t.Context(), r.led, c.job, operate.TriggerRequest{Run: "t3", Payload: make([]byte, c.size)}); !errors.Is(err, c.want) {
				t.Errorf("%s with %d bytes: %v, want %v", c.job, c.size, err, c.want)
			}
		}
	})
}

// TestTriggerLargePayload: large payloads are refused while many runs are due, for sweeps read them
// all. Delayed ones are not read.
func TestTriggerLargePayload(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		tomorrow := r.now + 24*time.Hour.Milliseconds()
		ask := func(run string, size int, at int64) error {
			_, err := operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: run, Payload: make([]byte, size), At: at})
			return err
		}
		taken := func(n int, run string, size int, at int64) {
			t.Helper()
			for i := range n {
				if err := ask(fmt.Sprint(run, i), size, at); err != nil {
					t.Fatalf("%s %d: %v", run, i, err)
				}
			}
		}
		taken(256, "delayed", 1024, tomorrow)
		taken(256, "due", 2048, 0)
		for _, at := range []int64{0, tomorrow} {
			if err := ask("large", 1025, at); !errors.Is(err, ledger.ErrRefused) || !strings.Contains(err.Error(), "1025 bytes") || !strings.Contains(err.Error(), "ask again") {
				t.Errorf("beside 256 that are due: %v", err)
			}
		}
		taken(1, "due", 2048, 0) // repeated
		taken(1, "small", 1024, 0)
	})
}

// TestTriggerOncePerKey: every request with a used key is answered with that run, also when its row
// is gone, until the time is over for which rows are kept.
func TestTriggerOncePerKey(t *testing.T) {
	onBoth(t, ledger.Config{Partitions: 1, Keep: 16, KeepFor: time.Hour}, func(t *testing.T, r *rig) {
		key := operate.TriggerRequest{Run: "ignored", Unique: "order|7"}
		ask := func(job string) string { return must(operate.Trigger(t.Context(), r.led, job, key)) }
		r.create(t, "a")
		r.create(t, "b")
		run := ask("a")
		if run != operate.UniqueRun("a", "order|7") || ask("a") != run || ask("b") == run {
			t.Fatalf("runs %s, %s, %s", run, ask("a"), ask("b"))
		}
		r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", run))
		r.pass(t, time.Minute)
		for s := int64(1); s <= 40; s++ {
			r.runOne(t, "a", s)
		}
		for _, later := range []time.Duration{0, 59*time.Minute - time.Millisecond, time.Millisecond} {
			r.pass(t, later)
			if ask("a"); (r.open(t, "a") != nil) != (later == time.Millisecond) {
				t.Fatalf("in flight %s later: %+v", later, r.open(t, "a"))
			}
		}
		key.At, key.Unique = r.now+10*3600_000, "later" // counts from its own time
		ask("b")
		if until := r.client.ZScore(t.Context(), r.led.Keys[0].Unique, operate.UniqueRun("b", "later")).Val(); int64(until) != r.now+11*3600_000 {
			t.Errorf("remembered until %d", int64(until)-r.now)
		}
	})
}

func TestTriggersAreBounded(t *testing.T) {
	useScripts(t, steered...)
	r := realRig(t, oneConfig)
	r.create(t, "a")
	r.client.ZAdd(t.Context(), r.led.Keys[0].Unique, members(ledger.UniqueMax-2)...)
	for i, want := range []error{nil, nil, ledger.ErrRefused} {
		if _, err := operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Unique: fmt.Sprint(i)}); !errors.Is(err, want) {
			t.Errorf("key %d: %v", i, err)
		}
	}
	r.client.ZAdd(t.Context(), r.led.Keys[0].Pending, members(ledger.PendingMax-3)...)
	for i, want := range []error{nil, ledger.ErrRefused} {
		if _, err := operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: fmt.Sprint("t", i)}); !errors.Is(err, want) {
			t.Errorf("run %d of those that may wait: %v", ledger.PendingMax+i, err)
		}
	}
}
