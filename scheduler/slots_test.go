package scheduler

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/ledger"
)

// Of a partition from which nothing is claimed nothing is: no tick, no pending run, no shard. What is of others goes on.
func TestShutPartition(t *testing.T) {
	e, now := shardsEngine(t, 10, true)
	e.jobs[0].part, e.jobs[1].part = 0, 1
	e.shut = func(part int) bool { return part == 0 }
	for _, j := range e.jobs {
		j.owned = true
		e.registered(j, now-1000) // due
	}
	e.consider(ledger.Finding{Pending: []ledger.Lease{
		{Run: ledger.ShardRun("x", 1), Job: "job-000", Of: "x", Shard: 1, Shards: 4, Granted: now - 1000},
		{Run: "hand", Job: "job-000", Granted: now - 1000},
	}})
	e.fire()
	if got := claimed(e); len(got) != 1 || got[0].Job != "job-001" || e.slots.used() != 1 {
		t.Errorf("claimed %v with %d slots, want the tick of job-001 with one", got, e.slots.used())
	}
	if at := e.jobs[0].at; at < now+shutPause.Milliseconds()/2 || at > now+2*lookAgain.Milliseconds() {
		t.Errorf("the other one is looked at after %d ms", at-now)
	}
}

// A batch that waits aside lends its slots. Each grant that is heard of when others have them is handed back; each slot is given back once.
func TestLentSlots(t *testing.T) {
	granted, held := ledger.Answer{Verdict: ledger.Granted, Token: 1}, ledger.Answer{Verdict: ledger.Held}
	for name, c := range map[string]struct {
		taken   int // by others meanwhile
		answers []ledger.Answer
		begun   []bool // of the grants
	}{
		"free":         {0, []ledger.Answer{granted, granted}, []bool{true, true}},
		"one is taken": {1, []ledger.Answer{granted, granted}, []bool{true, false}},
		"one refused":  {1, []ledger.Answer{held, granted}, []bool{true}},
		"all taken":    {2, []ledger.Answer{granted, granted}, []bool{false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			e, now := shardsEngine(t, 2, true)
			var begun []bool
			e.granted = func(g grant) { begun = append(begun, g.back == "") }
			for _, j := range e.jobs {
				j.owned = true
				e.registered(j, now-1000)
			}
			e.fire()
			b := <-e.batches
			if len(b.claims) != 2 || e.slots.take() {
				t.Fatalf("%d claims, want 2 that hold the slots", len(b.claims))
			}
			b.lent, b.answers = true, c.answers
			e.slots.lend(len(b.claims))
			for range c.taken {
				if !e.slots.take() {
					t.Fatal("a lent slot is not to be had")
				}
			}
			counted(t, e, "lent", 2-c.taken, 2)
			e.hear(b)
			if !slices.Equal(begun, c.begun) {
				t.Errorf("grants were begun: %v, want %v", begun, c.begun)
			}
			counted(t, e, "heard", 2-c.taken-len(begun), 0)
		})
	}
}

// counted wants so many slots to be free, and so many to be lent.
func counted(t *testing.T, e *engine, when string, free, lent int) {
	t.Helper()
	if e.slots.free != free || e.slots.lent != lent || e.slots.used() != e.slots.size-free+lent {
		t.Errorf("%s: %d slots are free, %d lent, %d in use; want %d and %d", when, e.slots.free, e.slots.lent, e.slots.used(), free, lent)
	}
}

// When the engine has ended, its slots are counted all the same.
func TestLendWhenEnded(t *testing.T) {
	e, _ := shardsEngine(t, 2, true)
	close(e.done)
	e.slots.take()
	e.slots.take()
	e.lend(2)
	counted(t, e, "lent", 2, 2)
	e.settled([]ledger.Report{{Job: "job-000"}}, true)
	e.returned(true)
	counted(t, e, "over", 2, 0)
}

// A run that is to be handed back while a master of a Cluster is silent lends its slot, and is handed back when the master answers,
// be it later than a few tries.
func TestHandBackWaits(t *testing.T) {
	var net redistest.Net
	f := func(context.Context, *jobs.Run) error { return errors.New("it was begun") }
	soloOver(t, &net, time.Minute, f, func(n *Node, j *job) {
		l := n.runner.admit(take(t, n, j, "run"))
		net.Cut()
		n.quiet.mu.Lock()
		n.quiet.at(j.part).unheard = true // as it would be of a Cluster
		n.quiet.mu.Unlock()
		ended := make(chan bool)
		go func() {
			n.runner.begin(l, true)
			close(ended)
		}()
		time.Sleep(20 * time.Second)
		n.engine.do(func() { counted(t, n.engine, "silent", n.slots.size, 1) })
		net.Heal()
		<-ended
		synctest.Wait()
		counted(t, n.engine, "over", n.slots.size, 0)
		if got, want := standing(t, n), "pending: "+ledger.Successor("run"); got != want {
			t.Errorf("it is %s; want %s", got, want)
		}
	})
}
