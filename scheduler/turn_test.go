package scheduler

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
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
		n := &Node{id: node.ID, cfg: Config{Grace: 500 * time.Millisecond}}
		n.crowd.Store(c)
		turn := 500*time.Millisecond + time.Duration(rank)*turnEvery
		if n.mayTake(j, turn-time.Millisecond) || !n.mayTake(j, turn) {
			t.Errorf("rank %d: turn is not %s", rank, turn)
		}
	}
	owner := &Node{id: ranked[0].ID, cfg: Config{Grace: time.Second}}
	owner.crowd.Store(c)
	if !owner.mayTake(&job{owned: true}, 0) {
		t.Error("the owner must not wait")
	}
	labelled := &job{Job: jobs.Job{Name: "job", Labels: map[string]string{"disk": "fast"}}, digest: "d"}
	if owner.mayTake(labelled, time.Hour) {
		t.Error("a node without the job's labels must never take it")
	}
}
