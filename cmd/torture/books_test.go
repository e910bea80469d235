//go:build unix

package main

import (
	"testing"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// TestStillOpen: a node that ended in peace has settled its runs. Only a struck node, or a Redis
// that forgets, may leave one.
func TestStillOpen(t *testing.T) {
	run := func(node string) judge.Run {
		return judge.Run{ID: "e9", Job: "each-01", Token: 10, NodeName: node}
	}
	lossy := []judge.Disturbance{{Span: judge.Span{From: second(8), Until: second(10)}, Loses: true}}
	for _, tt := range []struct {
		name   string
		open   []judge.Run
		faults []judge.Disturbance
		want   int
	}{
		{"a run of a node that ended in peace", []judge.Run{run("n1")}, nil, 1},
		{"of a node that was killed", []judge.Run{run("n2")}, nil, 0},
		{"of a node that ended in peace, forgotten", []judge.Run{run("n1")}, lossy, 0},
		{"handed back", []judge.Run{{ID: "e9", Job: "each-01"}}, nil, 0},
		{"an open tick of shards that all have ended", []judge.Run{{ID: "w9", Job: "each-01", IsOpenTick: true}}, nil, 1},
		{"an open tick of pending shards", []judge.Run{{ID: "w9", Job: "each-01", IsOpenTick: true}, {ID: "w9.0", Job: "each-01", TickID: "w9"}}, nil, 0},
	} {
		s := goodStage(t)
		s.nodes[1].killed = second(9)
		s.faults = tt.faults
		for i := range tt.open {
			tt.open[i].Granted = second(9).UnixMilli()
		}
		s.books["each-01"] = judge.JobSnapshot{Open: tt.open}
		if s.settled(); len(s.findings) != tt.want {
			t.Errorf("%s: want %d, got %v", tt.name, tt.want, s.findings)
		}
	}
}
