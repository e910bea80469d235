package ledger

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// TestReassertAShard: its grant is lost, and the tick is open still.
func TestReassertAShard(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		r.want(t, Opened, sharded(2, tickClaim("a", "x", 1), "p", "q"))
		opened := r.backup(t)
		l := r.granted(t, shardClaim("a", "x", 1))
		r.failover(t, opened)
		r.says(t, Restored, of(l))
		if e := r.entry(t, "a"); e.Open != "x" || e.Token != l.Token || e.Cursor != noon+2000 {
			t.Errorf("the entry is %+v", e)
		}
		r.whole(t)
		r.renews(t, locking.Renewed, l)
		if a := r.granted(t, shardClaim("a", "x", 0)); a.Token <= l.Token || a.Param != "p" {
			t.Errorf("granted %+v after %d", a, l.Token)
		}
		r.ends(t, Settled, l, jobs.OutcomeSucceeded)
		r.settle(t, Settled, "a", "x.0", jobs.OutcomeFailed)
		r.says(t, Ended, of(l))
		r.parts(t, "a", "1/2 succeeded 1", "0/2 failed 1", "all 2 failed 1: 1 of 2 shards did not succeed")
		r.whole(t)
	})
}

// TestReassertATick: the opening is lost with all that came of it. The first shard that is told of opens the tick anew, the
// others find it; what nobody was granted is pending; and the tick closes, once, with the last.
func TestReassertATick(t *testing.T) {
	params := []string{"a,b|c", "", "süd"}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		onBoth(t, oneConfig, func(t *testing.T, r *rig) {
			r.chainOf(t, "a", "b")
			r.pass(t, 1500*time.Millisecond)
			before := r.backup(t)
			r.want(t, Opened, sharded(3, tickClaim("a", "x", 1), params...))
			opened := r.now
			r.pass(t, time.Second)
			shards := []Lease{r.granted(t, shardClaim("a", "x", 0)), r.granted(t, shardClaim("a", "x", 1))}
			r.ends(t, Settled, shards[0], jobs.OutcomeFailed)
			for _, close := range []bool{false, true} {
				if close { // the whole tick is lost, closed as it was
					r.granted(t, shardClaim("a", "x", 2))
					r.settle(t, Settled, "a", "x.2", jobs.OutcomeSucceeded)
					r.parts(t, "a", "0/3 failed 1", "1/3 succeeded 1", "2/3 succeeded 1", "all 3 failed 1: 1 of 3 shards did not succeed")
				}
				r.failover(t, before)
				r.unchanged(t, "one that cannot open the tick", func() { r.says(t, Lost, of(shards[1])) })
				for _, i := range order {
					r.says(t, Restored, of(shards[i], reopen(params...)))
					r.whole(t)
				}
				tick := r.left(t, "a", "x")
				if tick == nil || tick.Left != 3 || tick.Prev != noon+1000 || tick.Next != noon+2000 || tick.Granted < opened || tick.Granted > r.now {
					t.Fatalf("the tick is %+v", tick)
				}
				if e := r.entry(t, "a"); e.Open != "x" || e.Cursor != noon+2000 {
					t.Errorf("the entry is %+v", e)
				}
				r.ends(t, Settled, shards[0], jobs.OutcomeFailed)
				r.want(t, Held, sharded(3, tickClaim("a", "y", 2))) // open since its first shard was granted
				r.ends(t, Settled, shards[1], jobs.OutcomeSucceeded)
				r.whole(t)
			}
			if l := r.granted(t, shardClaim("a", "x", 2)); l.Param != "süd" || l.Token <= shards[1].Token {
				t.Errorf("granted %+v", l)
			}
			r.settle(t, Settled, "a", "x.2", jobs.OutcomeSucceeded)
			r.says(t, Ended, of(shards[0], reopen(params...)))
			r.parts(t, "a", "0/3 failed 1", "1/3 succeeded 1", "2/3 succeeded 1", "all 3 failed 1: 1 of 3 shards did not succeed")
			r.relayAll(t)
			r.tale(t, "b", "skipped 1-1 x1 upstream failed")
			r.whole(t)
		})
	}
}

// TestReassertAShardTooLate: the tick was accounted for in another way, or is over.
func TestReassertAShardTooLate(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		before := r.backup(t)
		r.want(t, Opened, sharded(2, tickClaim("a", "x", 1)))
		l := r.granted(t, shardClaim("a", "x", 0))
		r.failover(t, before)
		r.want(t, Opened, sharded(2, tickClaim("a", "y", 1)))
		r.unchanged(t, "a shard of the other tick", func() {
			r.says(t, Lost, of(l, reopen()))
			r.renews(t, locking.Gone, l)
			r.ends(t, NoSuchRun, l, jobs.OutcomeSucceeded)
		})
		r.failover(t, before)
		r.pass(t, time.Second)
		r.want(t, Opened, sharded(2, lateClaim("a", "y", 1, 1)))
		r.says(t, Lost, of(l, reopen()))
		r.whole(t)

		// By hand nothing is a step: the tick is as it was.
		r.failover(t, before)
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t", Payload: []byte("p")}))
		r.want(t, Opened, sharded(2, pendingClaim("a", "t")))
		l = r.granted(t, shardClaim("a", "t", 0))
		r.failover(t, before)
		r.says(t, Restored, of(l, reopen()))
		if e := r.entry(t, "a"); e.Cursor != noon+1000 || e.Open != "t" {
			t.Errorf("the entry is %+v", e)
		}
		r.ends(t, Settled, l, jobs.OutcomeSucceeded)
		if l := r.granted(t, shardClaim("a", "t", 1)); string(l.Payload) != "p" {
			t.Errorf("granted %+v", l)
		}
		r.settle(t, Settled, "a", "t.1", jobs.OutcomeSucceeded)
		r.parts(t, "a", "0/2 succeeded by hand", "1/2 succeeded by hand", "all 2 succeeded by hand")
		r.whole(t)
	})
}

// TestReassertAShardsSecondAttempt: a shard that crashed, or was handed back, and was granted again is restored in the place of
// the first, which is not granted once more; the tick has one end of it.
func TestReassertAShardsSecondAttempt(t *testing.T) {
	for name, again := range map[string]func(*testing.T, *rig, Lease){
		"crashed": func(t *testing.T, r *rig, l Lease) { r.lapse(t, l) },
		"handed back": func(t *testing.T, r *rig, l Lease) {
			must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: l.Run, Token: l.Token}}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, 1500*time.Millisecond)
				story := []backup{r.backup(t)}
				r.want(t, Opened, sharded(2, tickClaim("a", "x", 1)))
				story = append(story, r.backup(t))
				first := r.granted(t, attempts(2, shardClaim("a", "x", 0)))
				story = append(story, r.backup(t))
				again(t, r, first)
				story = append(story, r.backup(t))
				l := r.granted(t, attempts(2, shardAgain("a", Successor("x.0"))))
				other := r.granted(t, attempts(2, shardClaim("a", "x", 1)))
				for i, before := range story {
					t.Logf("as of moment %d", i)
					r.failover(t, before)
					if name == "crashed" && i == 0 {
						r.says(t, Behind, of(l, reopen()))
						r.says(t, Restored, of(other, reopen()))
					}
					r.says(t, Restored, of(l, reopen()))
					r.says(t, map[bool]Word{true: Known, false: Restored}[name == "crashed" && i == 0], of(other, reopen()))
					r.ends(t, Settled, l, jobs.OutcomeSucceeded)
					if i == 2 && name == "crashed" { // and crashes as it did
						r.lapse(t, first)
					}
					r.renews(t, locking.Renewed, other)
					r.proven(t)
					r.ends(t, Settled, other, jobs.OutcomeSucceeded)
					r.proven(t)
					if open := must(r.led.Open(t.Context(), "a")); len(open) != 0 {
						t.Fatalf("in flight: %+v", open)
					}
					if rows := r.rows(t, "a"); !rows[len(rows)-1].Whole || rows[len(rows)-1].Outcome != jobs.OutcomeSucceeded {
						t.Errorf("rows %+v", rows)
					}
				}
			})
		})
	}
}

// TestReassertTheOpenTick: a tick that is opened anew does not take the job from what was opened or granted after it.
func TestReassertTheOpenTick(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		before := r.backup(t)
		r.want(t, Opened, sharded(2, tickClaim("a", "x", 1)))
		var x, y []Lease
		for i := range 2 {
			x = append(x, r.granted(t, shardClaim("a", "x", i)))
			r.ends(t, Settled, x[i], jobs.OutcomeSucceeded)
		}
		r.pass(t, 100*time.Millisecond)
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		r.want(t, Opened, sharded(2, pendingClaim("a", "t")))
		y = append(y, r.granted(t, shardClaim("a", "t", 0)))
		for _, order := range [][]Lease{{x[0], y[0], x[1]}, {y[0], x[0], x[1]}} {
			r.failover(t, before)
			for _, l := range order {
				r.says(t, Restored, of(l, reopen()))
			}
			if e := r.entry(t, "a"); e.Open != "t" {
				t.Errorf("the job is held by %q", e.Open)
			}
			r.ends(t, Settled, x[0], jobs.OutcomeSucceeded)
			r.ends(t, Settled, x[1], jobs.OutcomeSucceeded)
			if e := r.entry(t, "a"); e.Open != "t" || r.left(t, "a", "x") != nil {
				t.Errorf("the job is held by %q", e.Open)
			}
			r.whole(t)
		}
	})
}

// TestReassertATickHandedBack: a run that was handed back, and became a tick with shards as it was claimed again, is there
// once.
func TestReassertATickHandedBack(t *testing.T) {
	for name, first := range map[string]Claim{"of the schedule": tickClaim("a", "r1", 1), "by hand": pendingClaim("a", "r1")} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, 1500*time.Millisecond)
				if first.Pending {
					must(r.led.Trigger(t.Context(), "a", Trigger{Run: "r1", Payload: []byte("p")}))
				}
				l := r.granted(t, first)
				granted := r.backup(t)
				must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: l.Run, Token: l.Token}}))
				tick := Successor("r1")
				r.want(t, Opened, sharded(2, pendingClaim("a", tick)))
				shards := []Lease{r.granted(t, shardClaim("a", tick, 0)), r.granted(t, shardClaim("a", tick, 1))}
				r.failover(t, granted)
				r.says(t, Restored, of(shards[0], reopen()))
				r.says(t, Restored, of(shards[1], reopen()))
				if e := r.entry(t, "a"); e.Open != tick {
					t.Errorf("the job is held by %q", e.Open)
				}
				r.renews(t, locking.Gone, l)
				for _, shard := range shards {
					r.ends(t, Settled, shard, jobs.OutcomeSucceeded)
					r.whole(t)
				}
				if open := must(r.led.Open(t.Context(), "a")); len(open) != 0 {
					t.Errorf("in flight: %+v", open)
				}
			})
		})
	}
}

// TestReassertAfterItsEnd: what was handed back is there again, and is taken for crashed before the node speaks that
// was granted it since. That one is too late: the attempt has an end.
func TestReassertAfterItsEnd(t *testing.T) {
	for name, first := range map[string]Claim{"a shard": shardClaim("a", "x", 0), "by hand": pendingClaim("a", "t")} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, 1500*time.Millisecond)
				must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
				if first.Shard {
					r.want(t, Opened, sharded(2, tickClaim("a", "x", 1)))
				}
				l := r.granted(t, attempts(2, first))
				granted := r.backup(t)
				must(r.led.Unclaim(t.Context(), []Return{{Job: "a", Run: l.Run, Token: l.Token}}))
				again := first
				again.Run, again.Pending = Successor(l.Run), true
				late := r.granted(t, attempts(2, again))
				r.failover(t, granted)
				r.lapse(t, l)
				r.unchanged(t, "a run whose attempt has an end", func() { r.says(t, Lost, of(late, reopen())) })
				again.Run = Successor(l.Run) // the next attempt has the same id
				if next := r.granted(t, attempts(2, again)); next.Attempt != 2 || next.Token <= late.Token {
					t.Errorf("granted %+v", next)
				}
				r.whole(t)
			})
		})
	}
}
