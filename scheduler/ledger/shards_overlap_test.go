package ledger

import (
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// TestSkipWhileATickIsOpen: whatever its shards do, the open tick holds the job.
func TestSkipWhileATickIsOpen(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		r.want(t, Opened, sharded(2, tickClaim("a", "x", 1)))
		r.pass(t, time.Second)
		r.want(t, Skipped, sharded(2, tickClaim("a", "y", 2))) // none is running
		r.want(t, Granted, shardClaim("a", "x", 0))
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		for _, c := range []Claim{pendingClaim("a", "t"), sharded(2, pendingClaim("a", "t"))} {
			if a := r.want(t, Held, c); a.Detail != "x" {
				t.Errorf("held by %q", a.Detail)
			}
		}
		r.settle(t, Settled, "a", "x.0", jobs.OutcomeSucceeded)
		r.pass(t, time.Second)
		r.want(t, Skipped, tickClaim("a", "y", 3)) // one has ended
		r.want(t, Granted, shardClaim("a", "x", 1))
		r.settle(t, Settled, "a", "x.1", jobs.OutcomeSucceeded)
		r.pass(t, time.Second)
		r.want(t, Opened, sharded(2, tickClaim("a", "y", 4)))
		r.want(t, Held, sharded(2, pendingClaim("a", "t")))
		r.ended(t, "a", "y", jobs.OutcomeSucceeded, jobs.OutcomeSucceeded)
		r.want(t, Opened, sharded(2, pendingClaim("a", "t")))
		r.proven(t)
	})
}

// TestQueueWhileATickIsOpen: the busy time is that of the whole tick, and with overlap replace the tick is to
// end.
func TestQueueWhileATickIsOpen(t *testing.T) {
	for _, o := range []jobs.Overlap{jobs.OverlapQueue, jobs.OverlapReplace} {
		t.Run(o.String(), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				two := func(c Claim) Claim { return with(o, sharded(2, c)) }
				r.create(t, "a")
				r.pass(t, 2500*time.Millisecond)
				r.want(t, Opened, two(tickClaim("a", "x", 1)))
				opened := r.now
				r.want(t, Held, two(tickClaim("a", "y", 2))) // was due before
				r.want(t, Granted, with(o, shardClaim("a", "x", 0)))
				r.pass(t, time.Second)
				r.settle(t, Settled, "a", "x.0", jobs.OutcomeSucceeded)
				if flags := must(r.led.Cancels(t.Context())); len(flags) != 0 {
					t.Errorf("flags %+v", flags)
				}
				r.pass(t, time.Second)
				r.want(t, Held, two(passing("a", "y", 4, late(2, 3))))
				if e := r.entry(t, "a"); e.Cursor != noon+2000 || e.Open != "x" || e.Busy != (Window{}) {
					t.Errorf("the entry is %+v", e)
				}
				flags := must(r.led.Cancels(t.Context()))
				if o == jobs.OverlapReplace {
					if len(flags) != 1 || flags[0] != (Cancel{Run: "x"}) {
						t.Errorf("flags %+v", flags)
					}
					r.want(t, Passed, with(o, shardClaim("a", "x", 1)))
				} else {
					if len(flags) != 0 {
						t.Errorf("flags %+v", flags)
					}
					r.want(t, Granted, with(o, shardClaim("a", "x", 1)))
					r.settle(t, Settled, "a", "x.1", jobs.OutcomeSucceeded)
				}
				if e := r.entry(t, "a"); e.Busy != (Window{opened, r.now}) || e.Open != "" {
					t.Errorf("the entry is %+v, want it busy from %d to %d", e, opened, r.now)
				}
				r.want(t, Opened, two(passing("a", "y", 4, late(2, 2), overlapped(3, 3))))
				if e := r.entry(t, "a"); e.Busy != (Window{}) {
					t.Errorf("the entry is %+v", e)
				}
				r.proven(t)
			})
		})
	}
}

// TestAllowTicksBesideEachOther: an open tick holds nothing, and who comes late to it is told to plan anew.
func TestAllowTicksBesideEachOther(t *testing.T) {
	allow := func(c Claim) Claim { return with(jobs.OverlapAllow, c) }
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		one := allow(sharded(2, tickClaim("a", "x", 1)))
		r.want(t, Opened, one)
		r.want(t, Opened, one)
		other := one
		other.Run = "other"
		r.want(t, Moved, other)
		r.want(t, Opened, allow(sharded(2, tickClaim("a", "y", 2))))
		r.want(t, Granted, allow(shardClaim("a", "y", 1)))
		r.want(t, Granted, allow(shardClaim("a", "x", 0)))
		if e := r.entry(t, "a"); e.Open != "" || e.Busy != (Window{}) {
			t.Errorf("the entry is %+v", e)
		}
		r.settle(t, Settled, "a", "y.1", jobs.OutcomeFailed)
		r.settle(t, Settled, "a", "x.0", jobs.OutcomeSucceeded)
		r.proven(t)
		for _, tick := range []string{"y", "x"} {
			for i := range 2 {
				if a := r.claim(t, allow(shardClaim("a", tick, i))); a.Verdict == Granted {
					r.settle(t, Settled, "a", ShardRun(tick, i), jobs.OutcomeSucceeded)
				}
			}
		}
		r.parts(t, "a", "1/2 failed 2", "0/2 succeeded 1", "0/2 succeeded 2", "all 2 failed 2: 1 of 2 shards did not succeed",
			"1/2 succeeded 1", "all 2 succeeded 1")
		r.proven(t)
	})
}

// TestAllowNoLonger: a tick that was opened beside others goes on under a policy that knows no others, when
// nothing else holds the job; from then on it does.
func TestAllowNoLonger(t *testing.T) {
	allow := func(c Claim) Claim { return with(jobs.OverlapAllow, c) }
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, Opened, allow(sharded(2, tickClaim("a", "x", 1))))
		r.want(t, Opened, allow(sharded(2, tickClaim("a", "y", 2))))
		r.want(t, Granted, tickClaim("a", "one", 3)) // and now it is skip
		if a := r.want(t, Held, shardClaim("a", "x", 0)); a.Detail != "one" {
			t.Errorf("held by %q", a.Detail)
		}
		r.settle(t, Settled, "a", "one", jobs.OutcomeSucceeded)
		r.want(t, Granted, shardClaim("a", "x", 0))
		if e := r.entry(t, "a"); e.Open != "x" {
			t.Errorf("held by %q", e.Open)
		}
		r.want(t, Held, shardClaim("a", "y", 0))
		r.want(t, Held, tickClaim("a", "two", 4))
		r.settle(t, Settled, "a", "x.0", jobs.OutcomeSucceeded)
		r.want(t, Granted, shardClaim("a", "x", 1))
		r.settle(t, Settled, "a", "x.1", jobs.OutcomeSucceeded)
		r.ended(t, "a", "y", jobs.OutcomeSucceeded, jobs.OutcomeSucceeded)
		if e := r.entry(t, "a"); e.Open != "" || r.open(t, "a") != nil {
			t.Errorf("the entry is %+v", e)
		}
		r.proven(t)
	})
}

// TestPauseWhileATickIsOpen: its shards go on; a tick that nobody has opened does not.
func TestPauseWhileATickIsOpen(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		r.want(t, Opened, sharded(2, tickClaim("a", "x", 1)))
		r.pause(t, "a", Pause{})
		r.want(t, Granted, attempts(2, shardClaim("a", "x", 0)))
		r.reap(t, "a", "x.0")
		r.want(t, Moved, sharded(2, tickClaim("a", "y", 2)))
		r.want(t, Granted, shardAgain("a", Successor("x.0")))
		r.settle(t, Settled, "a", Successor("x.0"), jobs.OutcomeSucceeded)
		r.want(t, Granted, shardClaim("a", "x", 1))
		r.settle(t, Settled, "a", "x.1", jobs.OutcomeSucceeded)
		r.want(t, Passed, sharded(2, passing("a", "z", 0, paused(2, 5))))
		r.parts(t, "a", "0/2 abandoned 1", "0/2 succeeded 1 #2", "1/2 succeeded 1", "all 2 succeeded 1", "paused 2")
		r.proven(t)
	})
}

// TestAnotherNumberOfShards: an open tick keeps its own, the next one has the new one.
func TestAnotherNumberOfShards(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		digest, second := "d-second", int64(1)
		redefine := func(to string) {
			t.Helper()
			second = (r.now-noon)/1000 + 1
			d := Definition{Job: "a", Digest: to, Text: []byte("{}"), Cursor: noon + second*1000, WasDigest: digest, WasCursor: r.entry(t, "a").Cursor, Old: "@every 1s"}
			if got := must(r.led.Define(t.Context(), r.now, []Definition{d})); got[0].Word != "replaced" {
				t.Fatalf("%+v", got)
			}
			digest = to
		}
		now := func(c Claim) Claim {
			c.Digest = digest
			return c
		}
		r.create(t, "a")
		r.pass(t, time.Second)
		r.want(t, Opened, sharded(2, tickClaim("a", "x", 1), "p", "q"))
		redefine("d-4")
		r.want(t, Superseded, shardClaim("a", "x", 0))
		a := r.want(t, Granted, now(sharded(4, shardClaim("a", "x", 1))))
		if a.Run.Shards != 2 || a.Run.Param != "q" {
			t.Errorf("granted %+v", a.Run)
		}
		r.settle(t, Settled, "a", "x.1", jobs.OutcomeSucceeded)
		r.want(t, Granted, now(sharded(4, shardClaim("a", "x", 0))))
		r.settle(t, Settled, "a", "x.0", jobs.OutcomeSucceeded)
		r.pass(t, time.Second)
		r.want(t, Opened, now(sharded(4, tickClaim("a", "y", second))))
		if l := r.left(t, "a", "y"); l == nil || l.Shards != 4 {
			t.Fatalf("open: %+v", l)
		}
		redefine("d-1")
		r.want(t, Opened, now(pendingClaim("a", "y")))
		for i := range 4 {
			r.want(t, Granted, now(shardClaim("a", "y", i)))
			r.settle(t, Settled, "a", ShardRun("y", i), jobs.OutcomeSucceeded)
		}
		r.pass(t, time.Second)
		r.want(t, Granted, now(attempts(2, tickClaim("a", "z", second))))
		r.reap(t, "a", "z") // what was to be one run is opened, as its second attempt
		redefine("d-3")
		again := now(with(jobs.OverlapQueue, sharded(3, pendingClaim("a", Successor("z")))))
		r.want(t, Opened, again)
		for i := range 3 {
			c := now(shardClaim("a", Successor("z"), i))
			if a := r.want(t, Granted, c); a.Run.Attempt != 2 {
				t.Errorf("granted %+v", a.Run)
			}
			r.settle(t, Settled, "a", c.Run, jobs.OutcomeSucceeded)
		}
		rows := slices.DeleteFunc(r.rows(t, "a"), func(row Row) bool { return row.Ranged || row.Of != "" })
		if len(rows) != 4 || rows[0].Shards != 2 || rows[1].Shards != 4 || rows[2].Shards != 1 || rows[3].Shards != 3 || rows[3].Prev != 0 {
			t.Errorf("the ticks are %+v", rows)
		}
		r.proven(t)
	})
}

// TestBusyTimeOfATickOpenedLate: ticks that came due while the run was going whose next attempt is opened have
// waited for it since then.
func TestBusyTimeOfATickOpenedLate(t *testing.T) {
	queue := func(c Claim) Claim { return with(jobs.OverlapQueue, attempts(2, c)) }
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		r.want(t, Granted, queue(tickClaim("a", "r1", 1)))
		begun := r.now
		r.reap(t, "a", "r1")
		r.want(t, Opened, queue(sharded(2, pendingClaim("a", Successor("r1")))))
		r.want(t, Held, queue(passing("a", "y", 5, late(2, 4))))
		for i := range 2 {
			c := queue(shardClaim("a", Successor("r1"), i))
			r.want(t, Granted, c)
			r.settle(t, Settled, "a", c.Run, jobs.OutcomeSucceeded)
		}
		if e := r.entry(t, "a"); e.Busy != (Window{begun, r.now}) {
			t.Errorf("busy %+v, want from %d to %d", e.Busy, begun, r.now)
		}
		r.proven(t)
	})
}

// A shard whose lease lapsed long before the others ended does not make the busy time end with it.
func TestBusyTimeOfATickThatACrashCloses(t *testing.T) {
	queue := func(c Claim) Claim { return with(jobs.OverlapQueue, c) }
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		opened := r.now
		r.want(t, Opened, queue(sharded(2, tickClaim("a", "x", 1))))
		r.want(t, Granted, queue(shardClaim("a", "x", 0)))
		r.want(t, Granted, queue(shardClaim("a", "x", 1)))
		r.pass(t, 3*time.Second)
		r.renew(t, "a", "x.1", true)
		r.pass(t, 4*time.Second)
		r.settle(t, Settled, "a", "x.1", jobs.OutcomeSucceeded)
		if got := must(r.led.Reap(t.Context(), r.now, r.identity, []Lease{{Job: "a", Run: "x.0"}})); got[0] != Reaped {
			t.Fatalf("reap: %s", got[0])
		}
		if e := r.entry(t, "a"); e.Busy != (Window{opened, r.now}) {
			t.Errorf("busy %+v, want from %d to %d", e.Busy, opened, r.now)
		}
		r.proven(t)
	})
}
