package scheduler

import (
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/sharding"
)

// bigTick is a tick of 1,024 shards, all pending, and behind it a run by hand of another job.
func bigTick(now int64) (f ledger.Finding) {
	for shard := range 1024 {
		f.Pending = append(f.Pending, ledger.Lease{
			Run: ledger.ShardRun("x", shard), Job: "job-000", Of: "x", Shard: shard, Shards: 1024, Granted: now - 3_600_000,
		})
	}
	f.Pending = append(f.Pending, ledger.Lease{Run: "hand", Job: "job-001", Request: "hand", Granted: now - 3_500_000})
	return f
}

func shardsEngine(t *testing.T, slots int, mine bool) (*engine, int64) {
	e := readyEngine(t, 2, 1)
	e.slots, e.batches = newSlots(slots), make(chan *batch, slots)
	now := time.Now().UnixMilli()
	for _, j := range e.jobs {
		e.registered(j, now+60_000)
	}
	e.mayTake = func(*job, time.Duration) bool { return true }
	e.mayShard = func(*job, int, time.Duration) bool { return mine }
	return e, now
}

// claimed are the claims that wait for a sender.
func claimed(e *engine) (all []ledger.Claim) {
	for len(e.batches) > 0 {
		all = append(all, (<-e.batches).claims...)
	}
	return all
}

// A big tick whose shards this node may not take hides no other pending run.
func TestShardsOfOthersHideNothing(t *testing.T) {
	e, now := shardsEngine(t, 1, false)
	e.consider(bigTick(now))
	e.fire()
	if got := claimed(e); len(got) != 1 || got[0].Run != "hand" {
		t.Errorf("claimed %v, want the run by hand", got)
	}
}

// More shards than slots: other jobs' due ticks, and what else is pending, get every other slot.
func TestShardsAndTicksTakeTurns(t *testing.T) {
	e, now := shardsEngine(t, 1, true)
	e.jobs[1].owned = true
	e.consider(bigTick(now))
	var order []string
	for range 6 {
		e.fire()
		for _, c := range claimed(e) {
			order = append(order, c.Job)
			delete(e.asking, c.Run)
			e.slots.give()
			e.jobs[1].claiming = false
			e.registered(e.jobs[1], now-1000) // its next tick is due
		}
	}
	if want := "[job-001 job-000 job-001 job-000 job-001 job-000]"; fmt.Sprint(order) != want {
		t.Errorf("claimed %v, want %s", order, want)
	}
}

// Word of a definition that was replaced comes with the answer to each of a job's shards, and is told once.
func TestSupersededShardsAreToldOnce(t *testing.T) {
	e, now := shardsEngine(t, 40, true)
	told := 0
	e.expelled = func(*job, string) { told++ }
	e.consider(bigTick(now))
	e.fire()
	n := 0
	for len(e.batches) > 0 {
		b := <-e.batches
		n += len(b.claims)
		for range b.claims {
			b.answers = append(b.answers, ledger.Answer{Verdict: ledger.Superseded})
		}
		e.hear(b)
	}
	if n < 39 || told != 2 { // the run by hand's job, and the sharded one
		t.Errorf("%d claims were refused, told %d times", n, told)
	}
}

// After an outage everything is late for everybody: nodes that do not go first for a shard wait for their turn all
// the same.
func TestShardsAfterAnOutage(t *testing.T) {
	j := &job{digest: "d"}
	j.Name, j.Shards = "job", 4
	c := &crowd{sets: map[string]map[string]string{"s": {"job": "d"}}}
	for _, id := range []string{"a", "b", "c"} {
		c.nodes = append(c.nodes, sharding.Node{ID: id, Set: "s"})
	}
	for _, x := range c.nodes {
		n := &Node{id: x.ID, cfg: Config{Grace: 500 * time.Millisecond}, health: &health{}, quiet: newQuiet(nil)}
		n.crowd.Store(c)
		if !n.mayShard(j, 0, 5*time.Second) {
			t.Errorf("%s does not take what is 5 s late", x.ID)
		}
		n.health.sighted = time.Now()
		if n.mayShard(j, 0, 5*time.Second) {
			t.Errorf("%s takes at once what became late in an outage", x.ID)
		}
	}
}
