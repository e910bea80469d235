package ledger

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// attempts is a claim of a tick that may be granted so often before a crash ends it.
func attempts(most int, c Claim) Claim {
	c.Attempts = most
	return c
}

// reap lets a lease lapse and reaps it.
func (r *rig) reap(t *testing.T, job, run string) {
	t.Helper()
	r.pass(t, ttl+time.Millisecond)
	if got := must(r.led.Reap(t.Context(), r.now, r.identity, []Lease{{Job: job, Run: run}})); got[0] != Reaped {
		t.Fatalf("reap of %s: %s", run, got[0])
	}
}

// open is the one run in flight of a job, leased or pending; nil when there is none.
func (r *rig) open(t *testing.T, job string) *Lease {
	t.Helper()
	var found []Lease
	for _, l := range must(r.led.Open(t.Context(), job)) {
		if l.Job == job {
			found = append(found, l)
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1:
		return &found[0]
	}
	t.Fatalf("in flight: %+v", found)
	return nil
}

// TestRerunAfterACrash: the next attempt is pending at once, holds the job, has an id that follows from
// the old one and a larger token, and only so many follow.
func TestRerunAfterACrash(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		run, token := "r1", r.want(t, Granted, attempts(3, tickClaim("a", "r1", 1))).Token
		for n := 2; n <= 3; n++ {
			r.reap(t, "a", run)
			run = Successor(run)
			if l := r.open(t, "a"); l == nil || l.Run != run || l.Attempt != n || !l.Pending() || !l.Holds || l.Trigger != "rerun" || l.Prev != 0 {
				t.Fatalf("in flight after crash %d: %+v", n-1, l)
			}
			if e := r.entry(t, "a"); e.Open != run {
				t.Fatalf("the job is held by %q", e.Open)
			}
			r.want(t, Skipped, tickClaim("a", "other", int64(n)))
			a := r.want(t, Granted, attempts(3, pendingClaim("a", run)))
			if a.Token <= token || a.Run.Attempt != n || a.Run.Tick != noon+1000 {
				t.Fatalf("granted %+v after token %d", a, token)
			}
			token = a.Token
			r.sound(t)
		}
		r.reap(t, "a", run)
		if l := r.open(t, "a"); l != nil || r.entry(t, "a").Open != "" {
			t.Errorf("a fourth attempt: %+v", l)
		}
		r.tale(t, "a", "abandoned 1", "skipped 2-2 x1 overlap", "abandoned 1 #2", "skipped 3-3 x1 overlap", "abandoned 1 #3")
		r.settle(t, Lost, "a", "r1", jobs.OutcomeSucceeded) // it was alive all the time
		r.sound(t)
	})
}

// A run that was lost is answered by another attempt if its node says so, there are attempts left, and
// nobody wanted it ended. Repeating the report makes no second one.
func TestRerunAfterALoss(t *testing.T) {
	for name, c := range map[string]struct {
		most   int
		cancel bool
		rerun  bool
		want   bool
	}{
		"attempts left":         {2, false, true, true},
		"none left":             {1, false, true, false},
		"not asked for":         {2, false, false, false},
		"cancelled by somebody": {2, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, time.Minute)
				r.want(t, Granted, attempts(c.most, tickClaim("a", "r1", 1)))
				if c.cancel {
					must(r.led.Cancel(t.Context(), "a", "r1", "ann", ""))
				}
				for range 2 {
					report := Report{Job: "a", Run: "r1", Outcome: jobs.OutcomeLost, Started: r.now, Ended: r.now, Rerun: c.rerun}
					if got := must(r.led.Settle(t.Context(), []Report{report})); got[0] != Settled {
						t.Fatalf("settle: %s", got[0])
					}
				}
				if l := r.open(t, "a"); (l != nil) != c.want || c.want && (l.Run != Successor("r1") || l.Attempt != 2) {
					t.Errorf("in flight: %+v", l)
				}
				r.sound(t)
			})
		})
	}
}

// A run by hand takes its payload and the id asked for along, and its row has them.
func TestRerunOfARunByHand(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t", Payload: []byte("p|\n")}))
		r.want(t, Granted, attempts(2, pendingClaim("a", "t")))
		r.reap(t, "a", "t")
		fresh := Successor("t")
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"})) // is the same
		if a := r.want(t, Granted, attempts(2, pendingClaim("a", fresh))); string(a.Run.Payload) != "p|\n" || a.Run.Request != "t" {
			t.Errorf("granted %+v", a)
		}
		r.settle(t, Settled, "a", fresh, jobs.OutcomeSucceeded)
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		for _, run := range []string{"t", fresh} {
			if _, payload, err := r.led.Kept(t.Context(), "a", run); string(payload) != "p|\n" || err != nil {
				t.Errorf("kept of %s: %q, %v", run, payload, err)
			}
		}
		r.settle(t, Lost, "a", "t", jobs.OutcomeSucceeded) // found under its own id, not by the request
		if rows := r.rows(t, "a"); len(rows) != 2 || rows[0].Late == "" || rows[1].Late != "" || r.open(t, "a") != nil {
			t.Errorf("rows %+v", rows)
		}
		r.sound(t)
	})
}

// The busy time of a run that crashed and was repeated begins with its first attempt, and one of a crash
// ends with the lease. An attempt that an operator asks for begins anew.
func TestBusyTimeOverACrash(t *testing.T) {
	queue := func(c Claim) Claim { return with(jobs.OverlapQueue, attempts(2, c)) }
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		r.want(t, Granted, queue(tickClaim("a", "r1", 1)))
		first := r.now
		r.reap(t, "a", "r1")
		if e := r.entry(t, "a"); e.Busy != (Window{first, first + ttl.Milliseconds()}) {
			t.Errorf("after the crash %+v", e)
		}
		r.pass(t, time.Second)
		r.want(t, Granted, queue(pendingClaim("a", Successor("r1"))))
		r.want(t, Held, queue(passing("a", "r", 5, late(2, 4)))) // they wait behind it
		r.pass(t, time.Second)
		must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: Successor("r1")}}))
		last := Successor(Successor("r1"))
		r.want(t, Granted, queue(pendingClaim("a", last)))
		r.settle(t, Settled, "a", last, jobs.OutcomeSucceeded)
		if e := r.entry(t, "a"); e.Busy != (Window{first, r.now}) {
			t.Errorf("after the second attempt %+v, want from %d to %d", e.Busy, first, r.now)
		}
		r.pass(t, time.Second)
		fresh := must(r.led.Rerun(t.Context(), "a", last))
		r.want(t, Granted, queue(pendingClaim("a", fresh)))
		begun := r.now
		r.pass(t, time.Second)
		r.settle(t, Settled, "a", fresh, jobs.OutcomeSucceeded)
		if e := r.entry(t, "a"); e.Busy != (Window{begun, r.now}) {
			t.Errorf("after the operator's %+v, want from %d to %d", e.Busy, begun, r.now)
		}
		r.sound(t)
	})
}
