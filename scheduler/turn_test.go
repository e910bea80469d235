package scheduler

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/sharding"
)

// Late ticks are taken in turns, by rank, so that an outage is not followed by all nodes asking for
// everything at once.
func TestMayTakeInTurns(t *testing.T) {
	nodes := []sharding.Node{{ID: "a", Set: "s"}, {ID: "b", Set: "s"}, {ID: "c", Set: "s"}, {ID: "other", Set: "none"}}
	c := &crowd{nodes: nodes, sets: map[string]map[string]string{"s": {"job": "d"}}}
	j := &job{Job: jobs.Job{Name: "job"}, digest: "d"}
	ranked := sharding.Rank("job", c.holders(j))
	if len(ranked) != 3 {
		t.Fatalf("%d holders, want 3: a node that lacks the job must not be counted", len(ranked))
	}
	for rank, node := range ranked {
		n := &Node{id: node.ID, cfg: Config{Grace: 500 * time.Millisecond}, health: &health{}, quiet: newQuiet(nil)}
		n.crowd.Store(c)
		turn := 500*time.Millisecond + time.Duration(rank)*turnEvery
		if n.mayTake(j, turn-time.Millisecond) || !n.mayTake(j, turn) {
			t.Errorf("rank %d: turn is not %s", rank, turn)
		}
	}
	owner := &Node{id: ranked[0].ID, cfg: Config{Grace: time.Second}, health: &health{}, quiet: newQuiet(nil)}
	owner.crowd.Store(c)
	if !owner.mayTake(&job{owned: true}, 0) {
		t.Error("the owner must not wait")
	}
	labelled := &job{Job: jobs.Job{Name: "job", Labels: map[string]string{"disk": "fast"}}, digest: "d"}
	if owner.mayTake(labelled, time.Hour) {
		t.Error("a node without the job's labels must never take it")
	}
}

// crowdOf is a crowd whose nodes all hold the given jobs, and the jobs.
func crowdOf(nodes, n int) (*crowd, []*job) {
	c := &crowd{sets: map[string]map[string]string{"s": {}}}
	for i := range nodes {
		c.nodes = append(c.nodes, sharding.Node{ID: fmt.Sprint("node-", i), Set: "s"})
	}
	all := make([]*job, n)
	for i := range all {
		all[i] = &job{Job: jobs.Job{Name: fmt.Sprint("job-", i)}, digest: "d"}
		c.sets["s"][all[i].Name] = "d"
	}
	return c, all
}

// turnOf is when a node may take something of a job, tried millisecond by millisecond.
func turnOf(n *Node, j *job) time.Duration {
	var late time.Duration
	for !n.mayTake(j, late) {
		late += time.Millisecond
	}
	return late
}

// A full node stands first in rank for a job that is another's. The owner does not wait for all that, and the
// others' turns stay apart: no two nodes ask in one moment, and none waits longer than by its rank.
func TestMayTakeWhenTheFirstInRankIsFull(t *testing.T) {
	c, all := crowdOf(4, 40)
	elsewhere := 0
	for i := range all {
		turns := make(map[time.Duration]string)
		first := sharding.Rank(all[i].Name, c.nodes)[0].ID
		for _, node := range c.nodes {
			n := &Node{id: node.ID, cfg: Config{Grace: 500 * time.Millisecond}, health: &health{}, quiet: newQuiet(nil)}
			n.crowd.Store(c)
			j := *all[i]
			j.owned = c.owned(all, n.id)[all[i]]
			turn := turnOf(n, &j)
			if other, taken := turns[turn]; taken {
				t.Errorf("%s: %s and %s have their turn at %s", j.Name, other, n.id, turn)
			}
			turns[turn] = n.id
			if most := n.cfg.Grace + 3*turnEvery; turn > most || !j.owned && turn < n.cfg.Grace {
				t.Errorf("%s: the turn of %s, owner %v, is at %s", j.Name, n.id, j.owned, turn)
			}
			if j.owned && n.id != first {
				elsewhere++
			}
		}
		if turns[0] == "" {
			t.Errorf("%s: no node may take it at once: %v", all[i].Name, turns)
		}
	}
	if elsewhere == 0 {
		t.Error("every job is its first node's: the case is not there")
	}
}

// Where nodes race each has its turn at once, at a tick and behind it.
func TestMayTakeInARace(t *testing.T) {
	c, all := crowdOf(3, 1)
	all[0].Placement = jobs.PlacementRace
	for _, node := range c.nodes {
		n := &Node{id: node.ID, cfg: Config{Grace: 500 * time.Millisecond}, health: &health{}, quiet: newQuiet(nil)}
		n.crowd.Store(c)
		j := *all[0]
		j.owned = c.owned(all, n.id)[all[0]]
		if turn := turnOf(n, &j); turn != 0 {
			t.Errorf("%s waits for %s", n.id, turn)
		}
	}
}

// A node whose beats alone fail has seen whose turn passed: it waits no longer than others. Where its sweeps or its claims
// fail, turns count from when they are answered again.
func TestTurnsThroughFailingCalls(t *testing.T) {
	for role, want := range map[string]time.Duration{"beat": 10 * time.Second, "settle": 10 * time.Second, roleSweep: 0, roleClaim: 0} {
		t.Run(role, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &health{log: slog.New(slog.DiscardHandler)}
				for range 5 {
					h.fail(role, locking.ErrUnreachable)
					time.Sleep(10 * time.Millisecond)
					h.ok(roleSweep)
					time.Sleep(askedAnew)
				}
				if got := h.late(10 * time.Second); got != want {
					t.Errorf("10 s late count as %s, want %s", got, want)
				}
			})
		})
	}
}

// While grants are held after a failover nobody may ask: turns count from when they are given again, unless an outage has
// ended later. A node that starts holds nothing up, and the others have long had their turns.
func TestTurnsAfterAFailover(t *testing.T) {
	for _, c := range []struct {
		open   string
		outage bool // that ends as the hold does
		want   time.Duration
	}{{"former", false, 2 * time.Second}, {"former", true, time.Second}, {"", false, 10 * time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			n := &Node{log: slog.New(slog.DiscardHandler), health: &health{log: slog.New(slog.DiscardHandler)}}
			f := &failover{n: n, open: c.open, since: time.Now()}
			time.Sleep(5 * time.Second)
			if c.outage {
				n.health.fail(roleSweep, locking.ErrUnreachable)
				n.health.ok(roleSweep)
			}
			f.release("new")
			time.Sleep(2 * time.Second)
			if got := n.health.late(10 * time.Second); got != c.want {
				t.Errorf("%+v: 10 s late count as %s, want %s", c, got, c.want)
			}
		})
	}
}
