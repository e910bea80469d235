package ledger

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// TestReassertAGrant: a grant that was lost is there again with everything that belongs to it, and the cursor behind it.
func TestReassertAGrant(t *testing.T) {
	for _, ended := range []bool{false, true} {
		t.Run(fmt.Sprint("ended ", ended), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, 1500*time.Millisecond)
				before := r.backup(t)
				l := r.granted(t, attempts(3, with(jobs.OverlapQueue, tickClaim("a", "r1", 1))))
				was := *r.open(t, "a")
				if ended {
					r.ends(t, Settled, l, jobs.OutcomeFailed)
				}
				r.failover(t, before)
				if e := r.entry(t, "a"); e.Cursor != noon+1000 || e.Token != 0 {
					t.Fatalf("nothing was lost: %+v", e)
				}
				r.says(t, Restored, of(l))
				was.Until, was.Beat = r.now+ttl.Milliseconds(), 1 // it was said twice
				if got := *r.open(t, "a"); !reflect.DeepEqual(got, was) {
					t.Errorf("restored\n%+v, it was\n%+v", got, was)
				}
				if e := r.entry(t, "a"); e.Cursor != noon+2000 || e.Last != noon+1000 || e.Open != "r1" || e.Token != l.Token {
					t.Errorf("the entry is %+v", e)
				}
				r.renews(t, locking.Renewed, l)
				r.want(t, Moved, tickClaim("a", "other", 1))
				r.whole(t)
				r.ends(t, Settled, l, jobs.OutcomeFailed)
				r.says(t, Ended, of(l))
				r.pass(t, time.Second)
				if next := r.granted(t, tickClaim("a", "r2", 2)); next.Token <= l.Token {
					t.Errorf("token %d after %d", next.Token, l.Token)
				}
				r.tale(t, "a", "failed 1")
				r.whole(t)
			})
		})
	}
}

// What was not lost is known: a run that goes on, one whose end alone was lost, and one that has ended.
func TestReassertWhatIsThere(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		l := r.granted(t, tickClaim("a", "r1", 1))
		granted := r.backup(t)
		r.pass(t, time.Second)
		r.ends(t, Settled, l, jobs.OutcomeSucceeded)
		ended := r.backup(t)
		r.failover(t, granted)
		r.pass(t, ttl) // the lease has lapsed and nobody reaped it
		r.says(t, Known, of(l))
		if o := r.open(t, "a"); o.Until != r.now+ttl.Milliseconds() || o.Beat != 2 {
			t.Errorf("the lease was not renewed: %+v", o)
		}
		r.ends(t, Settled, l, jobs.OutcomeSucceeded)
		r.tale(t, "a", "succeeded 1")
		r.whole(t)
		r.failover(t, ended)
		r.unchanged(t, "saying what is known", func() { r.says(t, Ended, of(l)) })
		r.ends(t, Settled, l, jobs.OutcomeSucceeded)
		r.tale(t, "a", "succeeded 1")
		r.whole(t)
	})
}

// TestReassertAPendingRun: of a run by hand the grant alone is lost, or the request as well.
func TestReassertAPendingRun(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		nothing := r.backup(t)
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t", Payload: []byte("p|\n\x00")}))
		asked := r.backup(t)
		l := r.granted(t, pendingClaim("a", "t"))
		for _, before := range []backup{nothing, asked} {
			r.failover(t, before)
			r.says(t, Restored, of(l))
			if o := r.open(t, "a"); o == nil || o.Pending() || string(o.Payload) != "p|\n\x00" || r.entry(t, "a").Open != "t" {
				t.Fatalf("in flight: %+v", o)
			}
			must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"})) // is the same
			r.whole(t)
			r.ends(t, Settled, l, jobs.OutcomeSucceeded)
			must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
			if _, payload, err := r.led.Kept(t.Context(), "a", "t"); r.open(t, "a") != nil || string(payload) != "p|\n\x00" || err != nil {
				t.Errorf("kept: %q, %v", payload, err)
			}
			r.tale(t, "a", "succeeded by hand")
			r.whole(t)
		}
	})
}

// TestReassertAfterAHandBack: whichever of the two grants and of what was between them is lost, the second is restored,
// and nothing of the first stays behind.
func TestReassertAfterAHandBack(t *testing.T) {
	for _, first := range []Claim{tickClaim("a", "x", 1), pendingClaim("a", "x")} {
		t.Run(fmt.Sprint("pending ", first.Pending), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, 1500*time.Millisecond)
				nothing := r.backup(t)
				story := []backup{nothing}
				if first.Pending {
					must(r.led.Trigger(t.Context(), "a", Trigger{Run: "x"}))
					story = append(story, r.backup(t))
				}
				r.granted(t, first)
				story = append(story, r.backup(t))
				must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: "x"}}))
				story = append(story, r.backup(t))
				l := r.grantedTo(t, Claimer{"n2", "beta"}, pendingClaim("a", Successor("x")))
				for i, before := range story {
					t.Logf("as of moment %d", i)
					r.failover(t, before)
					r.says(t, Restored, of(l))
					if o := r.open(t, "a"); o == nil || o.Run != l.Run || r.entry(t, "a").Open != l.Run {
						t.Fatalf("in flight: %+v", o)
					}
					r.whole(t)
					r.ends(t, Settled, l, jobs.OutcomeSucceeded)
					r.tale(t, "a", map[bool]string{true: "succeeded by hand", false: "succeeded 1"}[first.Pending])
					r.whole(t)
				}
			})
		})
	}
}

// TestReassertTooLate: the new server has granted the tick to somebody else before it heard of the first. That one is
// undisturbed, and the first is told, by its token, whatever it does.
func TestReassertTooLate(t *testing.T) {
	second := Claimer{"n2", "beta"}
	for name, again := range map[string]string{"as another run": "r9", "as the same run": "r1"} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, 1500*time.Millisecond)
				before := r.backup(t)
				l := r.granted(t, tickClaim("a", "r1", 1))
				r.failover(t, before)
				next := r.grantedTo(t, second, tickClaim("a", again, 1))
				if next.Token <= l.Token {
					t.Fatalf("token %d after %d", next.Token, l.Token)
				}
				r.unchanged(t, "the first holder", func() {
					r.says(t, Lost, of(l))
					r.renews(t, locking.Gone, l)
					r.ends(t, map[string]Word{"r9": NoSuchRun, "r1": Lost}[again], l, jobs.OutcomeFailed)
					back := []Return{{Job: "a", Run: l.Run, Token: l.Token}}
					if got := must(r.led.Unclaim(t.Context(), back)); got[0] != Lost {
						t.Errorf("handed back: %s", got[0])
					}
				})
				r.renews(t, locking.Renewed, next)
				r.says(t, Known, of(next))
				r.ends(t, Settled, next, jobs.OutcomeSucceeded)
				r.says(t, map[string]Word{"r9": Lost, "r1": Ended}[again], of(l))
				r.tale(t, "a", "succeeded 1")
				r.whole(t)
			})
		})
	}
}

// TestReassertAtAnotherServer: who is wrong about the server, or about its clock, does nothing.
func TestReassertAtAnotherServer(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 2500*time.Millisecond)
		before := r.backup(t)
		first := r.identity
		l := r.granted(t, tickClaim("a", "r1", 1))
		r.failover(t, before)
		ctx, at := t.Context(), r.led.At(first)
		server := func(what string, err error) {
			t.Helper()
			if failed(err) != "server" {
				t.Errorf("%s: %v", what, err)
			}
		}
		r.unchanged(t, "asking another server", func() {
			_, err := at.Claim(ctx, node, r.now, []Claim{tickClaim("a", "r2", 1)})
			server("claim", err)
			_, err = at.Renew(ctx, []locking.Renewal{{Name: "a", Owner: "r1", Token: l.Token, TTL: ttl}})
			server("renew", err)
			_, err = at.Settle(ctx, []Report{{Job: "a", Run: "r1", Token: l.Token, Outcome: jobs.OutcomeFailed}})
			server("settle", err)
			_, err = r.led.Reassert(ctx, r.now, first, []Assertion{of(l)})
			server("reassert", err)
			_, err = r.led.Reassert(ctx, r.now+1001, r.identity, []Assertion{of(l)})
			if want := fmt.Sprintf("clock %d believed %d", r.now, r.now+1001); failed(err) != want {
				t.Errorf("reassert: %v, want %s", err, want)
			}
		})
		r.says(t, Restored, of(l))
		r.whole(t)
	})
}
