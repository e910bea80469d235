//go:build unix

package main

import (
	"testing"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// TestSuccession: once a definition has given way to another, it runs no more, and the last one comes to count.
func TestSuccession(t *testing.T) {
	terms := []term{
		{name: "a", jobs: []job{{name: "plan", schedule: even, shards: 1}}},
		{name: "b", jobs: []job{{name: "plan", schedule: odd, shards: 4}}},
		{name: "c", jobs: []job{{name: "plan", schedule: even, shards: 1}}},
	}
	run := func(n int, node string, shards int) line {
		return line{job: "plan", tick: second(n), token: int64(n), node: node, phase: judge.Start, shards: shards}
	}
	for _, tt := range []struct {
		name  string
		lines []line
		want  int
	}{
		{"one after the other", []line{run(1, "a1", 1), run(2, "b1", 4), run(3, "c1", 1)}, 0},
		{"written in another order", []line{run(2, "b1", 4), run(1, "a1", 1), run(3, "c1", 1)}, 0},
		{"an old node ran after a newer one", []line{run(1, "a1", 1), run(2, "b1", 4), run(3, "a2", 1), run(4, "b1", 4), run(5, "c1", 1)}, 2},
		{"one that came back with an old configuration did", []line{run(1, "a1", 1), run(2, "b1", 4), run(3, "old", 4), run(4, "c1", 1), run(5, "old", 4)}, 2},
		{"the last one never ran", []line{run(1, "a1", 1), run(2, "b1", 4)}, 2},
		{"a node of nobody", []line{run(1, "x1", 1), run(2, "c1", 1)}, 1},
		{"another number of shards", []line{run(1, "a1", 1), run(2, "b1", 2), run(3, "c1", 1)}, 1},
	} {
		if got := succession("plan", terms, map[string]string{"old": "b"}, tt.lines); len(got) != tt.want {
			t.Errorf("%s: want %d, got %v", tt.name, tt.want, got)
		}
	}
}
