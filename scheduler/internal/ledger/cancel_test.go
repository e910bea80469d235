package ledger

import (
	"errors"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func TestCancel(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		cancel := func(job, run string, want Status, refused error) {
			t.Helper()
			if got, err := r.led.Cancel(t.Context(), job, run, "ann|b", "too\nlong"); got != want || !errors.Is(err, refused) {
				t.Fatalf("cancel of %s: %s, %v, want %s, %v", run, got, err, want, refused)
			}
		}
		r.create(t, "a")
		r.create(t, "b")
		r.pass(t, time.Minute)
		cancel("a", "r1", "", ErrUnknownRun)
		cancel("nobody", "r1", "", ErrUnknownRun)

		r.want(t, Granted, tickClaim("a", "r1", 1))
		cancel("b", "r1", "", ErrUnknownRun) // another job's
		cancel("a", "r1", Told, nil)
		cancel("a", "r1", Told, nil)
		want := Cancel{Run: "r1", Author: "ann/b", Reason: "too long"}
		if found := must(r.led.NewScanner().Scan(t.Context(), r.now, 0)).Cancels; len(found) != 1 || found[0] != want {
			t.Errorf("a look finds %+v, want %+v", found, want)
		}
		r.settle(t, Settled, "a", "r1", jobs.OutcomeCancelled)
		if left := must(r.led.Cancels(t.Context())); len(left) != 0 {
			t.Errorf("the flag stays: %+v", left)
		}
		cancel("a", "r1", Cancelled, nil) // repeated
		r.complete(t, jobs.OutcomeSucceeded, tickClaim("a", "r2", 2))
		cancel("a", "r2", "", ErrRefused)

		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t", Payload: []byte("p")}))
		cancel("b", "t", "", ErrUnknownRun)
		cancel("a", "t", Cancelled, nil)
		cancel("a", "t", Cancelled, nil)
		r.want(t, Stale, pendingClaim("a", "t"))
		row := r.rows(t, "a")[2]
		if row.Run != "t" || row.Request != "t" || row.Reason != "cancelled by ann/b: too long" || row.Tries != 0 || row.Token != 0 || row.At != r.now {
			t.Errorf("row is %+v", row)
		}
		if _, payload, _ := r.led.Kept(t.Context(), "a", "t"); string(payload) != "p" {
			t.Errorf("payload %q", payload)
		}
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"})) // it has been
		if l := r.open(t, "a"); l != nil {
			t.Errorf("in flight: %+v", l)
		}
		if must(r.led.Cancel(t.Context(), "a", must(r.led.Rerun(t.Context(), "a", "r2")), "", "")); r.rows(t, "a")[3].Reason != "cancelled by somebody" {
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
		r.want(t, Granted, attempts(2, tickClaim("a", "r1", 1)))
		r.reap(t, "a", "r1")
		must(r.led.Cancel(t.Context(), "a", NextAttemptID("r1"), "ann", ""))
		r.want(t, Granted, attempts(2, tickClaim("a", "r2", 2)))
		must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: "r2"}}))
		must(r.led.Cancel(t.Context(), "a", NextAttemptID("r2"), "ann", ""))
		r.sound(t)
		r.want(t, Granted, attempts(2, tickClaim("a", "r3", 3)))
		must(r.led.Cancel(t.Context(), "a", "r3", "ann", ""))
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
		queued := func(c Claim) Claim { return with(jobs.OverlapQueue, attempts(2, c)) }
		r.want(t, Granted, queued(tickClaim("a", "r1", 1)))
		granted := r.now
		r.reap(t, "a", "r1")
		r.pass(t, time.Minute)
		must(r.led.Cancel(t.Context(), "a", NextAttemptID("r1"), "ann", ""))
		if e := r.entry(t, "a"); e.Busy != (Window{granted, r.now}) {
			t.Errorf("busy %+v, want from the grant at %d to %d", e.Busy, granted, r.now)
		}
		last := (r.now - noon) / 1000
		r.want(t, Stale, queued(passing("a", "r2", last, late(2, last-1))))
		r.complete(t, jobs.OutcomeSucceeded, queued(passing("a", "r2", last, overlapped(2, last-1))))
		r.relayAll(t)
		must(r.led.Cancel(t.Context(), "a", must(r.led.Rerun(t.Context(), "a", "r2")), "ann", ""))
		if told := r.events(t); len(told) != 0 {
			t.Errorf("the followers are told %+v", told)
		}
		r.sound(t)
	})
}
