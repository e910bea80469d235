//go:build unix

package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// crashed is a node that has ended by itself.
func crashed(t *testing.T, name string) *node {
	t.Helper()
	n, err := startNode("false", t.TempDir(), name)
	if err != nil {
		t.Fatal(err)
	}
	<-n.exited
	if err := os.WriteFile(n.log, []byte("panic: the last words of "+name), 0o600); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNobodyLeft: where all nodes have crashed, no node is left to freeze, kill or stop, and the
// scenario returns errNobody.
func TestNobodyLeft(t *testing.T) {
	s := &stage{nodes: []*node{crashed(t, "n1")}, say: func(string, ...any) {}}
	for _, do := range []string{"leave", "kill", "freeze"} {
		if err := play(func() { s.step(do, nil) }); !errors.Is(err, errNobody) {
			t.Errorf("%s: %v", do, err)
		}
	}
}

// TestCrashIsNamed: a scenario that cannot go on, because a node has crashed, names the node.
func TestCrashIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name string
		act  func(s *stage, n *node)
		want int
	}{
		{"crashed", func(*stage, *node) {}, 1},
		{"killed", func(_ *stage, n *node) { n.killed = time.Now() }, 0},
		{"told to leave", func(_ *stage, n *node) { n.left = time.Now() }, 0},
		{"told to end", func(s *stage, _ *node) { s.asked = time.Now() }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sc := scenario{name: "one", act: func(_ context.Context, _ *rehearsal, s *stage) {
				n := crashed(t, "n1")
				s.nodes = append(s.nodes, n)
				tt.act(s, n)
				s.check(errors.New("it cannot go on"))
			}}
			r := rehearsal{seconds: 5 * time.Second}
			got := sc.perform(t.Context(), &r, t.TempDir(), "none", func(string, ...any) {}).findings
			named := slices.DeleteFunc(slices.Clone(got), func(f judge.Finding) bool {
				return f.Kind != wrongExit || !strings.Contains(f.What, "the last words of n1")
			})
			if len(named) != tt.want || len(got) != tt.want+1 || got[tt.want].Kind != undone || !strings.Contains(got[tt.want].What, "it cannot go on") {
				t.Errorf("want it named %d times: %v", tt.want, got)
			}
		})
	}
}
