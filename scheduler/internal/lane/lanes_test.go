package lane

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
)

var minutely = []jobs.Job{{Name: "a", Schedule: "* * * * *"}}

// TestClaimAndSettle: a tick through a lane, its lease, its checkpoint and its output.
func TestClaimAndSettle(t *testing.T) {
	inNode(t, false, minutely, func(t *testing.T, w *node) {
		g := w.run("a", "r1")
		time.Sleep(2 * ttl)
		if w.noted(func() bool { return w.leases["r1"].Lost() || len(w.abandoned) != 0 }) {
			t.Error("the lease is not renewed")
		}
		if err := w.Save(t.Context(), g.Lease, "", []byte("half")); err != nil {
			t.Error(err)
		}
		if by, data, err := w.Saved(t.Context(), ledger.Run{Job: "a", ID: "r2", Tick: g.Lease.Tick, Attempt: 2}); err != nil || string(data) == "" && by != "" {
			t.Error(by, data, err)
		}
		if err := w.Tail(t.Context(), 0, []settle.Tail{{Job: "a", Run: "r1", Token: g.Lease.Token, Output: []byte("line")}}); err != nil {
			t.Error(err)
		}
		w.end(g, jobs.OutcomeSucceeded)
		w.eventually("the end is recorded", func() bool { return slices.Equal(w.rows("a"), []string{"succeeded"}) })
		if w.noted(func() bool { return !slices.Equal(w.settled, []ledger.Status{settle.Settled}) }) || w.entry("a").HolderRun != "" {
			t.Errorf("settled: %v; the job is held by %q", w.settled, w.entry("a").HolderRun)
		}
		if w.Err() != nil || w.Unreachable() || !w.Masters()[0].Up || w.Blocked(0) || w.Held() {
			t.Errorf("%v", w.Err())
		}
	})
}

// TestHandBack: a run that does not begin is pending again, and its node claims it as any other.
func TestHandBack(t *testing.T) {
	inNode(t, false, minutely, func(t *testing.T, w *node) {
		g := w.run("a", "r1")
		g.HandBackReason = "the node drains"
		w.HandBack(g, func() bool { return true })()
		if w.entry("a").HolderRun == "" || len(w.rows("a")) != 0 || !strings.Contains(w.logged(), "run handed back") {
			t.Errorf("%+v; the log:\n%s", w.entry("a"), w.logged())
		}
		w.redis[0].Stop()
		if w.HandBack(g, func() bool { return false })(); !strings.Contains(w.logged(), "run could not be handed back") {
			t.Error(w.logged())
		}
	})
}

// TestClaimThroughAnOutage: a claim whose tick is granted without an answer is repeated until Redis answers. A claim that waits behind is not
// sent any more.
func TestClaimThroughAnOutage(t *testing.T) {
	inNode(t, false, minutely, func(t *testing.T, w *node) {
		time.Sleep(time.Until(time.UnixMilli(w.cursor("a"))))
		first, second := w.claimOf("a", "r1"), w.claimOf("a", "r2")
		w.redis[0].Stop()
		w.Claim(first)
		time.Sleep(10 * time.Millisecond)
		w.Claim(second)
		time.Sleep(10 * time.Second)
		if w.Unreachable(); w.Err() == nil || !errors.Is(w.Err(), locking.ErrUnreachable) {
			t.Errorf("%v", w.Err())
		}
		if err := w.redis[0].Restart(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if b := <-w.answers; b.Err != nil && !errors.Is(b.Err, work.ErrNotSent) || b.Err == nil && b.Answers[0].Verdict == claim.Granted {
				t.Errorf("%+v", b)
			}
		}
		w.eventually("the node claims again", func() bool { return w.Holding() == nil && w.Err() == nil })
		w.run("a", "r3")
		if late := w.Overdue(0, time.Hour); late > time.Hour/2 {
			t.Errorf("after the outage a tick counts as %s late", late)
		}
	})
}

// TestEmptied: Redis loses its data while a run goes on. Claims wait for the hold, and the run is stored again.
func TestEmptied(t *testing.T) {
	inNode(t, false, minutely, func(t *testing.T, w *node) {
		g := w.run("a", "r1")
		if err := w.client.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		before := w.Changes()
		w.eventually("another epoch is noticed", func() bool { return w.Changes() > before })
		if w.Holding() == nil || !w.Held() {
			t.Errorf("claims go on: %v", w.Holding())
		}
		if <-w.lost; w.Blocked(0) != true {
			t.Error("the partition is claimed from")
		}
		w.end(g, jobs.OutcomeSucceeded) // waits until its run is stored again
		w.define(minutely[0])
		w.eventually("the node claims again", func() bool { return w.Holding() == nil })
		w.eventually("the end is recorded", func() bool { return slices.Contains(w.rows("a"), "succeeded") })
		if asserted, restored := w.Servers(); asserted == "" || asserted != restored {
			t.Errorf("%q, %q", asserted, restored)
		}
	})
}

// TestOneMasterIsAway: claims and reports of its partitions release their slots and go on when it answers; other partitions go on meanwhile.
func TestOneMasterIsAway(t *testing.T) {
	inNode(t, true, []jobs.Job{{Name: "a", Schedule: "* * * * *"}, {Name: "b", Schedule: "* * * * *"}, {Name: "c", Schedule: "* * * * *"}}, func(t *testing.T, w *node) {
		away := w.cluster.Master("{ns:" + "x}")
		part := func(job string) int { return w.Jobs.Named(job).Part }
		var there, here string
		for _, j := range w.Jobs.All() {
			if m, err := w.led.Master(t.Context(), j.Part); err != nil {
				t.Fatal(err)
			} else if there == "" || m.Addr == away.Addr() {
				there = j.Name
				for _, e := range w.redis {
					if e.Addr() == m.Addr {
						away = e
					}
				}
			}
		}
		for _, j := range w.Jobs.All() {
			if w.of(j.Part) != w.of(part(there)) {
				here = j.Name
			}
		}
		g := w.run(there, "r1")
		time.Sleep(time.Until(time.UnixMilli(w.cursor(there))))
		claim := w.claimOf(there, "r2")
		away.Stop()
		w.end(g, jobs.OutcomeSucceeded)
		w.Claim(claim)
		w.eventually("the breaker is open", func() bool { return w.of(part(there)).breaker.open() })
		w.eventually("the claim holds no slot", func() bool { return w.Slots.Used() <= 0 })
		if err := w.At("register", part(there), func() error { return nil }); !errors.Is(err, ErrBreaker) {
			t.Error(err)
		}
		if err := w.Save(t.Context(), g.Lease, "", nil); !errors.Is(err, locking.ErrUnreachable) {
			t.Error(err)
		}
		if err := w.Tail(t.Context(), part(there), nil); !errors.Is(err, ErrBreaker) {
			t.Error(err)
		}
		if here != "" {
			if w.run(here, "r3"); !slices.ContainsFunc(w.Masters(), func(m Master) bool { return m.Up }) {
				t.Errorf("%+v", w.Masters())
			}
		}
		if err := away.Restart(); err != nil {
			t.Fatal(err)
		}
		<-w.answers
		w.eventually("the breaker is closed", func() bool { return !w.of(part(there)).breaker.open() && !w.Blocked(part(there)) })
		w.eventually("the end is recorded", func() bool { return slices.Contains(w.rows(there), "succeeded") })
	})
}

// TestPartitionMoves: the lane of a partition's new master goes on with its claims and reports.
func TestPartitionMoves(t *testing.T) {
	inNode(t, true, minutely, func(t *testing.T, w *node) {
		g := w.run("a", "r1")
		from := w.of(g.Job.Part)
		var to, at int
		for i, e := range w.redis {
			if e.Addr() == from.addr {
				at = i
			} else {
				to = i
			}
		}
		keys := w.redis[at].Mini().Keys()
		if len(keys) == 0 {
			t.Fatal("the master has no keys")
		}
		for _, key := range keys {
			if w.cluster.Master(key).Addr() == from.addr {
				w.cluster.MoveSlot(key, w.redis[to])
			}
		}
		w.end(g, jobs.OutcomeSucceeded)
		w.eventually("the partition has another lane", func() bool { return w.of(g.Job.Part) != from })
		w.eventually("the end is recorded", func() bool { return slices.Contains(w.rows("a"), "succeeded") })
		w.eventually("the node claims again", func() bool { return !w.Blocked(g.Job.Part) })
		w.run("a", "r2")
	})
}

// TestDetachedBatchOfASilentMaster: batches that wait in its lane are of another master, and are not
// returned.
func TestDetachedBatchOfASilentMaster(t *testing.T) {
	inNode(t, true, minutely, func(t *testing.T, w *node) {
		time.Sleep(time.Until(time.UnixMilli(w.cursor("a"))))
		f := &flight{Batch: w.claimOf("a", "r1"), skew: skew, detached: true}
		current := w.of(f.Part)
		for _, e := range w.redis {
			if e.Addr() == current.addr {
				e.Stop()
			}
		}
		for _, l := range w.all() {
			if l == current {
				continue
			}
			waiting := make(chan *work.Batch, 1)
			waiting <- &work.Batch{}
			s := *l.sender
			s.claims, s.answers = waiting, make(chan *work.Batch, 1)
			draining, drain := context.WithCancel(t.Context())
			drain() // the batch is given up after 3 MaxSkew
			f.state, f.FirstSent = claiming, time.Now()
			if !s.send(draining, f) || f.Err == nil || !f.SlotsFreed || len(waiting) != 1 {
				t.Errorf("%v; %d batches wait", f.Err, len(waiting))
			}
			return
		}
	})
}
