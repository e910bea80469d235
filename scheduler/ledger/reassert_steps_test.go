package ledger

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
)

// TestReassertBehind: a run whose tick lies ahead of the cursor waits for what other nodes say of the ticks before it;
// what nobody says anything of is given up, and stays so.
func TestReassertBehind(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.pass(t, 1500*time.Millisecond)
		before := r.backup(t)
		var all []Lease
		for s := int64(1); s <= 6; s++ {
			all = append(all, r.granted(t, tickClaim("a", string(rune('p'+s)), s)))
			r.ends(t, Settled, all[s-1], jobs.OutcomeSucceeded)
			r.pass(t, time.Second)
		}
		r.failover(t, before)
		r.unchanged(t, "a run ahead", func() {
			if a := r.says(t, Behind, of(all[3])); a.Cursor != noon+1000 {
				t.Errorf("answered %+v", a)
			}
		})
		r.says(t, Restored, of(all[0]))
		if a := r.says(t, Behind, of(all[3])); a.Cursor != noon+2000 {
			t.Errorf("answered %+v", a)
		}
		r.says(t, Restored, of(all[3], gap(2, 3)))
		r.whole(t)
		if e := r.entry(t, "a"); e.Cursor != noon+5000 || e.Open != all[3].Run || e.Counts[jobs.OutcomeMissed] != 2 {
			t.Errorf("the entry is %+v", e)
		}
		for _, l := range all[1:3] {
			r.says(t, Lost, of(l))
			r.says(t, Lost, of(l, gap(1, 1)))
			r.ends(t, NoSuchRun, l, jobs.OutcomeSucceeded)
		}
		r.says(t, Behind, of(all[5], gap(4, 5))) // the cursor has moved meanwhile
		r.says(t, Restored, of(all[5], gap(5, 5)))
		r.ends(t, Settled, all[3], jobs.OutcomeFailed)
		r.ends(t, Settled, all[5], jobs.OutcomeSucceeded)
		r.ends(t, Settled, all[0], jobs.OutcomeSucceeded)
		r.whole(t)
		r.tale(t, "a", "missed 2-3 x2 failover", "missed 5-5 x1 failover", "failed 4", "succeeded 6", "succeeded 1")
		r.relayAll(t) // the follower has word of every tick, once
		r.tale(t, "b", "skipped 2-3 x2 upstream missed", "skipped 4-4 x1 upstream failed", "skipped 5-5 x1 upstream missed")
		if open := must(r.led.Open(t.Context(), "b")); len(open) != 2 {
			t.Errorf("pending are %+v", open)
		}
		r.want(t, Granted, tickClaim("a", "next", 7))
	})
}

// TestReassertAnUnknownJob: Redis is empty. What a node had is nothing until the job is there, and then no step of it: it
// holds the job until it has ended.
func TestReassertAnUnknownJob(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		empty := r.backup(t)
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		l := r.granted(t, tickClaim("a", "r1", 1))
		r.failover(t, empty)
		r.unchanged(t, "a job that nobody knows", func() { r.says(t, NoSuchJob, of(l)) })
		must(r.led.Define(t.Context(), r.now, []Definition{{Job: "a", Digest: "d-second", Text: []byte("{}"), Cursor: noon + 2000}}))
		r.says(t, Restored, of(l))
		if o, e := r.open(t, "a"), r.entry(t, "a"); o.Prev != 0 || o.Next != 0 || o.Token != l.Token || e.Cursor != noon+2000 || e.Open != "r1" {
			t.Errorf("restored %+v, %+v", o, e)
		}
		r.pass(t, time.Second)
		r.renews(t, locking.Renewed, l)
		r.want(t, Skipped, tickClaim("a", "r2", 2))
		r.ends(t, Settled, l, jobs.OutcomeSucceeded)
		r.says(t, Ended, of(l))
		r.pass(t, time.Second)
		if next := r.granted(t, tickClaim("a", "r3", 3)); next.Token <= l.Token {
			t.Errorf("token %d after %d", next.Token, l.Token)
		}
		r.tale(t, "a", "skipped 2-2 x1 overlap", "succeeded 1")
		r.proven(t)
	})
}

// TestReassertAnotherDefinition: with the definition that a run was granted by its tick is lost: the stored one may know no
// such tick.
func TestReassertAnotherDefinition(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		before := r.backup(t)
		redefine := Definition{Job: "a", Digest: "d-new", Text: []byte("{}"), Cursor: noon + 1000, WasDigest: "d-second", WasCursor: noon + 1000, Old: "@every 1s"}
		define := func() {
			if got := must(r.led.Define(t.Context(), r.now, []Definition{redefine})); got[0].Word != "replaced" {
				t.Fatalf("defined: %+v", got)
			}
		}
		define()
		r.pass(t, 1500*time.Millisecond)
		c := tickClaim("a", "r1", 1)
		c.Digest = "d-new"
		l := r.granted(t, c)
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		r.failover(t, before)
		digest := func(a *Assertion) { a.Digest = "d-new" }
		r.unchanged(t, "another definition", func() {
			r.says(t, OtherDef, of(l, digest))
			r.says(t, OtherDef, of(l, digest, gap(0, 0)))
		})
		// The registrar has replaced it, and counted the tick as superseded.
		redefine.Cursor, redefine.Until, redefine.Count = noon+2000, noon+1000, 1
		define()
		r.says(t, Lost, of(l, digest))
		r.whole(t)
	})
}

// TestReassertTheHolder: of two runs that were lost the one that was granted later holds the job, in whatever order
// they are told of; and a run that the new server has granted since holds it against both.
func TestReassertTheHolder(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		before := r.backup(t)
		first := r.granted(t, tickClaim("a", "r1", 1))
		granted := r.backup(t)
		r.ends(t, Settled, first, jobs.OutcomeSucceeded)
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		second := r.granted(t, pendingClaim("a", "t"))
		for _, order := range [][]Lease{{first, second}, {second, first}} {
			for _, as := range []backup{before, granted} {
				r.failover(t, as)
				for _, l := range order {
					must(r.led.Reassert(t.Context(), r.now, r.identity, []Assertion{of(l)}))
				}
				r.ends(t, Settled, first, jobs.OutcomeSucceeded)
				if e := r.entry(t, "a"); e.Open != "t" || e.Token != second.Token || e.Busy != (Window{}) {
					t.Errorf("the entry is %+v", e)
				}
				r.whole(t)
				r.ends(t, Settled, second, jobs.OutcomeSucceeded)
				if e := r.entry(t, "a"); e.Open != "" {
					t.Errorf("the job is held by %q", e.Open)
				}
				r.whole(t)
			}
		}
		r.failover(t, before)
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "new"}))
		third := r.granted(t, pendingClaim("a", "new"))
		for _, l := range []Lease{second, first} {
			r.says(t, Restored, of(l))
			if e := r.entry(t, "a"); e.Open != "new" || e.Token != third.Token {
				t.Errorf("the entry is %+v", e)
			}
		}
		r.whole(t)
	})
}

// TestReassertBesideOthers: with overlap allow nothing holds the job, before and after.
func TestReassertBesideOthers(t *testing.T) {
	allow := func(c Claim) Claim { return with(jobs.OverlapAllow, c) }
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 3500*time.Millisecond)
		before := r.backup(t)
		one, two := r.granted(t, allow(tickClaim("a", "r1", 1))), r.granted(t, allow(tickClaim("a", "r2", 2)))
		r.failover(t, before)
		got := must(r.led.Reassert(t.Context(), r.now, r.identity, []Assertion{of(two), of(one), of(two), of(one)}))
		want := []Asserted{{Behind, noon + 1000}, {Restored, noon + 2000}, {Restored, noon + 3000}, {Known, noon + 3000}}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("answer %d is %+v, want %+v", i, got[i], want[i])
			}
		}
		if e := r.entry(t, "a"); e.Open != "" || e.Token != two.Token {
			t.Errorf("the entry is %+v", e)
		}
		r.granted(t, allow(tickClaim("a", "r3", 3)))
		r.whole(t)
		r.ends(t, Settled, two, jobs.OutcomeSucceeded)
		r.ends(t, Settled, one, jobs.OutcomeSucceeded)
		r.tale(t, "a", "succeeded 2", "succeeded 1")
		r.whole(t)
	})
}

// TestReassertTellsFollowers: what was told before the failover and is told again reaches a follower once.
func TestReassertTellsFollowers(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.pass(t, 1500*time.Millisecond)
		before := r.backup(t)
		l := r.granted(t, tickClaim("a", "r1", 1))
		granted := r.backup(t)
		r.ends(t, Settled, l, jobs.OutcomeSucceeded)
		told := r.backup(t)
		r.relayAll(t)
		run := r.open(t, "b").Run
		pending := r.backup(t)
		follower := after(0, "b", run)
		b := r.granted(t, follower)
		for _, as := range []backup{before, granted, told, pending} {
			r.failover(t, as)
			said := of(b)
			said.Digest = "d-after"
			r.says(t, Restored, said)
			got := must(r.led.Reassert(t.Context(), r.now, r.identity, []Assertion{of(l)}))
			if got[0].Word != Ended {
				r.ends(t, Settled, l, jobs.OutcomeSucceeded)
			}
			r.relayAll(t)
			if open := must(r.led.Open(t.Context(), "b")); len(open) != 1 || open[0].Run != run || open[0].Pending() {
				t.Errorf("in flight: %+v", open)
			}
			r.ends(t, Settled, b, jobs.OutcomeSucceeded)
			r.tale(t, "a", "succeeded 1")
			r.tale(t, "b", "succeeded 1")
			r.whole(t)
		}
	})
}
