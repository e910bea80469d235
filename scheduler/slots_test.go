package scheduler

import (
	"testing"

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

// A batch that waits aside lends its slots. When others have them as it is answered, its runs are handed back; each slot is given
// back once.
func TestLentSlots(t *testing.T) {
	for name, c := range map[string]struct {
		taken int // by others meanwhile
		back  bool
	}{"free": {1, false}, "taken": {2, true}} {
		t.Run(name, func(t *testing.T) {
			e, now := shardsEngine(t, 2, true)
			var got []grant
			e.granted = func(g grant) { got = append(got, g) }
			for _, j := range e.jobs {
				j.owned = true
				e.registered(j, now-1000)
			}
			e.fire()
			b := <-e.batches
			if len(b.claims) != 2 || e.slots.take() {
				t.Fatalf("%d claims, want 2 that hold the slots", len(b.claims))
			}
			b.lent = true
			e.slots.lend(len(b.claims))
			for range c.taken {
				if !e.slots.take() {
					t.Fatal("a lent slot is not to be had")
				}
			}
			if want := 2 + c.taken; e.slots.used() != want {
				t.Errorf("%d slots are taken or lent, want %d", e.slots.used(), want)
			}
			b.answers = []ledger.Answer{{Verdict: ledger.Granted, Token: 1}, {Verdict: ledger.Held}}
			e.hear(b)
			if len(got) != 1 || got[0].back != c.back {
				t.Fatalf("granted %+v, want one to be handed back: %v", got, c.back)
			}
			if want := 1 + c.taken; e.slots.used() != want {
				t.Errorf("%d slots are taken, want %d", e.slots.used(), want)
			}
			e.slots.lend(1) // the end of the run is not taken either
			e.slots.forgo(1)
			if e.slots.used() != c.taken {
				t.Errorf("%d slots are taken in the end, want the %d of others", e.slots.used(), c.taken)
			}
		})
	}
}

// When the engine has ended, its slots are counted all the same.
func TestLendWhenEnded(t *testing.T) {
	e, _ := shardsEngine(t, 2, true)
	close(e.done)
	e.slots.take()
	e.lend(1)
	e.settled([]ledger.Report{{Job: "job-000"}}, true)
	if e.slots.used() != 0 {
		t.Errorf("%d slots are taken", e.slots.used())
	}
}
