package ledger_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// TestReassertAGrant: a grant that was lost is there again with everything that belongs to it, and
// the cursor behind it.
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
					r.ends(t, settle.Settled, l, jobs.OutcomeFailed)
				}
				r.failover(t, before)
				if e := r.entry(t, "a"); e.Cursor != noon+1000 || e.Token != 0 {
					t.Fatalf("nothing was lost: %+v", e)
				}
				r.says(t, epoch.Restored, of(l))
				was.Until, was.Beat = r.now+ttl.Milliseconds(), 1 // reported twice
				if got := *r.open(t, "a"); !reflect.DeepEqual(got, was) {
					t.Errorf("restored\n%+v, it was\n%+v", got, was)
				}
				if e := r.entry(t, "a"); e.Cursor != noon+2000 || e.Last != noon+1000 || e.HolderRun != "r1" || e.Token != l.Token {
					t.Errorf("the entry is %+v", e)
				}
				r.renews(t, locking.Renewed, l)
				r.want(t, claim.Stale, tickClaim("a", "other", 1))
				r.whole(t)
				r.ends(t, settle.Settled, l, jobs.OutcomeFailed)
				r.says(t, epoch.Ended, of(l))
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

// TestReassertTooLate: the new server has granted the tick to another node before the first one's
// report. The second run is undisturbed, and every call of the first is refused, by its token.
func TestReassertTooLate(t *testing.T) {
	second := claim.Claimer{ID: "n2", Name: "beta"}
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
					r.says(t, ledger.Lost, of(l))
					r.renews(t, locking.Gone, l)
					r.ends(t, map[string]ledger.Status{"r9": ledger.NoSuchRun, "r1": ledger.Lost}[again], l, jobs.OutcomeFailed)
					back := []settle.Return{{Job: "a", Run: l.ID, Token: l.Token}}
					if got := must(settle.Unclaim(t.Context(), r.led, back)); got[0] != ledger.Lost {
						t.Errorf("handed back: %s", got[0])
					}
				})
				r.renews(t, locking.Renewed, next)
				r.says(t, epoch.Known, of(next))
				r.ends(t, settle.Settled, next, jobs.OutcomeSucceeded)
				r.says(t, map[string]ledger.Status{"r9": ledger.Lost, "r1": epoch.Ended}[again], of(l))
				r.tale(t, "a", "succeeded 1")
				r.whole(t)
			})
		})
	}
}

// TestReassertAtAnotherServer: a caller with a wrong server or clock does nothing.
func TestReassertAtAnotherServer(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 2500*time.Millisecond)
		before := r.backup(t)
		first := r.epoch()
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
			_, err := claim.Send(ctx, at, node, r.now, []claim.Claim{tickClaim("a", "r2", 1)})
			server("claim", err)
			_, err = settle.Renew(ctx, at, []locking.Renewal{{Name: "a", Owner: "r1", Token: l.Token, TTL: ttl}})
			server("renew", err)
			_, err = settle.Settle(ctx, at, []settle.Report{{Job: "a", Run: "r1", Token: l.Token, Outcome: jobs.OutcomeFailed}})
			server("settle", err)
			_, err = epoch.Reassert(ctx, r.led.At(first), r.now, []epoch.Assertion{of(l)})
			server("reassert", err)
			_, err = epoch.Reassert(ctx, r.led.At(r.epoch()), r.now+1001, []epoch.Assertion{of(l)})
			if want := fmt.Sprintf("clock %d believed %d", r.now, r.now+1001); failed(err) != want {
				t.Errorf("reassert: %v, want %s", err, want)
			}
		})
		r.says(t, epoch.Restored, of(l))
		r.whole(t)
	})
}

// TestReassertASecondAttempt: whatever is lost of a crash and of the attempt that followed, that
// attempt is restored, alone, and no other follows when the first is reaped again.
func TestReassertASecondAttempt(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		r.want(t, claim.Granted, attempts(3, tickClaim("a", "r1", 1)))
		story := []backup{r.backup(t)}
		r.reap(t, "a", "r1")
		story = append(story, r.backup(t))
		second := r.grantedTo(t, claim.Claimer{ID: "n2", Name: "beta"}, attempts(3, pendingClaim("a", ledger.NextAttemptID("r1"))))
		story = append(story, r.backup(t))
		for i, before := range story {
			for _, late := range []bool{false, true} { // whether the second attempt ends before the first is reaped again
				t.Logf("as of moment %d, ends late: %v", i, late)
				r.failover(t, before)
				r.says(t, map[bool]ledger.Status{true: epoch.Known, false: epoch.Restored}[i == 2], of(second))
				if e := r.entry(t, "a"); e.HolderRun != second.ID || e.Token != second.Token || e.Cursor != noon+2000 {
					t.Fatalf("the entry is %+v", e)
				}
				if late {
					r.ends(t, settle.Settled, second, jobs.OutcomeSucceeded)
				}
				if i == 0 {
					r.reap(t, "a", "r1")
				}
				if !late {
					r.whole(t)
					r.ends(t, settle.Settled, second, jobs.OutcomeSucceeded)
				}
				want := []string{"abandoned 1", "succeeded 1 #2"}
				if i == 0 && late {
					slices.Reverse(want)
				}
				r.sound(t)
				if r.tale(t, "a", want...); r.open(t, "a") != nil || r.entry(t, "a").HolderRun != "" {
					t.Errorf("in flight: %+v", r.open(t, "a"))
				}
				r.granted(t, tickClaim("a", "r2", 2))
			}
		}
	})
}

// TestReassertBehind: a run whose tick lies ahead of the cursor waits for other nodes' reports of
// the ticks before it; unreported ticks are given up, and stay so.
func TestReassertBehind(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.pass(t, 1500*time.Millisecond)
		before := r.backup(t)
		var all []ledger.Run
		for s := int64(1); s <= 6; s++ {
			all = append(all, r.granted(t, tickClaim("a", string(rune('p'+s)), s)))
			r.ends(t, settle.Settled, all[s-1], jobs.OutcomeSucceeded)
			r.pass(t, time.Second)
		}
		r.failover(t, before)
		r.unchanged(t, "a run ahead", func() {
			if a := r.says(t, epoch.Behind, of(all[3])); a.Cursor != noon+1000 {
				t.Errorf("answered %+v", a)
			}
		})
		r.says(t, epoch.Restored, of(all[0]))
		if a := r.says(t, epoch.Behind, of(all[3])); a.Cursor != noon+2000 {
			t.Errorf("answered %+v", a)
		}
		r.says(t, epoch.Restored, of(all[3], gap(2, 3)))
		r.whole(t)
		if e := r.entry(t, "a"); e.Cursor != noon+5000 || e.HolderRun != all[3].ID || e.Counts[jobs.OutcomeMissed] != 2 {
			t.Errorf("the entry is %+v", e)
		}
		for _, l := range all[1:3] {
			r.says(t, ledger.Lost, of(l))
			r.says(t, ledger.Lost, of(l, gap(1, 1)))
			r.ends(t, ledger.NoSuchRun, l, jobs.OutcomeSucceeded)
		}
		r.says(t, epoch.Behind, of(all[5], gap(4, 5))) // the cursor has moved meanwhile
		r.says(t, epoch.Restored, of(all[5], gap(5, 5)))
		r.ends(t, settle.Settled, all[3], jobs.OutcomeFailed)
		r.ends(t, settle.Settled, all[5], jobs.OutcomeSucceeded)
		r.ends(t, settle.Settled, all[0], jobs.OutcomeSucceeded)
		r.whole(t)
		r.tale(t, "a", "missed 2-3 x2 failover", "missed 5-5 x1 failover", "failed 4", "succeeded 6", "succeeded 1")
		r.relayAll(t) // the follower has word of every tick, once
		r.tale(t, "b", "skipped 2-3 x2 upstream missed", "skipped 4-4 x1 upstream failed", "skipped 5-5 x1 upstream missed")
		if open := must(query.InFlight(t.Context(), r.led, "b")); len(open) != 2 {
			t.Errorf("pending are %+v", open)
		}
		r.want(t, claim.Granted, tickClaim("a", "next", 7))
	})
}

// TestReassertTheHolder: of two lost runs the one granted later holds the job, in whatever order
// they are reported; and a run that the new server has granted since holds it against both.
func TestReassertTheHolder(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		before := r.backup(t)
		first := r.granted(t, tickClaim("a", "r1", 1))
		r.ends(t, settle.Settled, first, jobs.OutcomeSucceeded)
		must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "t"}))
		second := r.granted(t, pendingClaim("a", "t"))
		for _, order := range [][]ledger.Run{{first, second}, {second, first}} {
			r.failover(t, before)
			for _, l := range order {
				r.says(t, epoch.Restored, of(l))
			}
			r.ends(t, settle.Settled, first, jobs.OutcomeSucceeded)
			if e := r.entry(t, "a"); e.HolderRun != "t" || e.Token != second.Token || e.Busy != (ledger.Window{}) {
				t.Errorf("the entry is %+v", e)
			}
			r.whole(t)
			r.ends(t, settle.Settled, second, jobs.OutcomeSucceeded)
			if e := r.entry(t, "a"); e.HolderRun != "" {
				t.Errorf("the job is held by %q", e.HolderRun)
			}
		}
		r.failover(t, before)
		must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "new"}))
		third := r.granted(t, pendingClaim("a", "new"))
		for _, l := range []ledger.Run{second, first} {
			r.says(t, epoch.Restored, of(l))
			if e := r.entry(t, "a"); e.HolderRun != "new" || e.Token != third.Token {
				t.Errorf("the entry is %+v", e)
			}
		}
		r.whole(t)
	})
}

// TestReassertATick: the opening is lost with all its results. The first reported shard opens the
// tick anew, later reports find it; shards that were never granted are pending; and the tick
// closes, once, with the last.
func TestReassertATick(t *testing.T) {
	params := []string{"a,b|c", "", "süd"}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		onBoth(t, oneConfig, func(t *testing.T, r *rig) {
			r.chainOf(t, "a", "b")
			r.pass(t, 1500*time.Millisecond)
			before := r.backup(t)
			r.want(t, claim.Opened, sharded(3, tickClaim("a", "x", 1), params...))
			opened := r.now
			r.pass(t, time.Second)
			shards := []ledger.Run{r.granted(t, shardClaim("a", "x", 0)), r.granted(t, shardClaim("a", "x", 1))}
			r.ends(t, settle.Settled, shards[0], jobs.OutcomeFailed)
			for _, close := range []bool{false, true} {
				if close { // the whole tick is lost, closed as it was
					r.granted(t, shardClaim("a", "x", 2))
					r.settle(t, settle.Settled, "a", "x.2", jobs.OutcomeSucceeded)
					r.tale(t, "a", "0/3 failed 1", "1/3 succeeded 1", "2/3 succeeded 1", "all 3 failed 1: 1 of 3 shards did not succeed")
				}
				r.failover(t, before)
				r.unchanged(t, "one that cannot open the tick", func() { r.says(t, ledger.Lost, of(shards[1])) })
				for _, i := range order {
					r.says(t, epoch.Restored, of(shards[i], reopen(params...)))
					r.whole(t)
				}
				tick := r.left(t, "a", "x")
				if tick == nil || tick.Left != 3 || tick.Prev != noon+1000 || tick.Next != noon+2000 || tick.Granted < opened || tick.Granted > r.now {
					t.Fatalf("the tick is %+v", tick)
				}
				if e := r.entry(t, "a"); e.HolderRun != "x" || e.Cursor != noon+2000 {
					t.Errorf("the entry is %+v", e)
				}
				r.ends(t, settle.Settled, shards[0], jobs.OutcomeFailed)
				r.want(t, claim.JobBusy, sharded(3, tickClaim("a", "y", 2))) // open since its first shard was granted
				r.ends(t, settle.Settled, shards[1], jobs.OutcomeSucceeded)
				r.whole(t)
			}
			if l := r.granted(t, shardClaim("a", "x", 2)); l.Param != "süd" || l.Token <= shards[1].Token {
				t.Errorf("granted %+v", l)
			}
			r.settle(t, settle.Settled, "a", "x.2", jobs.OutcomeSucceeded)
			r.says(t, epoch.Ended, of(shards[0], reopen(params...)))
			r.tale(t, "a", "0/3 failed 1", "1/3 succeeded 1", "2/3 succeeded 1", "all 3 failed 1: 1 of 3 shards did not succeed")
			r.relayAll(t)
			r.tale(t, "b", "skipped 1-1 x1 upstream failed")
			r.whole(t)
		})
	}
}

// TestReassertWhatWasHandedBack: a node whose hand-back was not answered reports the run to a new
// server. The run is then not pending beside its own lease: it would be granted as the same
// attempt.
func TestReassertWhatWasHandedBack(t *testing.T) {
	for what, grant := range map[string]func(t *testing.T, r *rig) ledger.Run{
		"a tick": func(t *testing.T, r *rig) ledger.Run { return r.granted(t, tickClaim("a", "x", 1)) },
		"a shard": func(t *testing.T, r *rig) ledger.Run {
			r.want(t, claim.Opened, sharded(3, tickClaim("a", "x", 1), "", "", ""))
			return r.granted(t, shardClaim("a", "x", 1))
		},
		"a run by hand": func(t *testing.T, r *rig) ledger.Run {
			must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "t"}))
			return r.granted(t, pendingClaim("a", "t"))
		},
	} {
		t.Run(what, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.chainOf(t, "a", "b")
				r.pass(t, 1500*time.Millisecond)
				l := grant(t, r)
				must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: "a", Run: l.ID, Token: l.Token}}))
				r.failover(t, r.backup(t))
				r.says(t, epoch.Restored, of(l))
				for _, o := range must(query.InFlight(t.Context(), r.led, "a")) {
					if o.Job == "a" && o.Pending() && o.Shard == l.Shard {
						t.Errorf("%s waits beside %s", o.ID, l.ID)
					}
				}
				r.ends(t, settle.Settled, l, jobs.OutcomeSucceeded)
				r.whole(t)
			})
		})
	}
}
