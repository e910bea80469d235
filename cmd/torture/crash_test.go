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

	"github.com/escapement/escapement/locking/redistest"
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

// TestNobodyLeft: where all nodes have crashed there is nobody to freeze, to kill or to send away, which is an answer too.
func TestNobodyLeft(t *testing.T) {
	s := &stage{nodes: []*node{crashed(t, "n1")}, struck: map[string]bool{}, dead: map[string]bool{}, left: map[string]bool{}, say: func(string, ...any) {}}
	for _, do := range []string{"leave", "kill", "freeze"} {
		var frozen *node
		if err := s.step(do, &frozen); err == nil || !strings.Contains(err.Error(), do) {
			t.Errorf("%s: %v", do, err)
		}
	}
	if v, err := s.first(map[string]string{"each-01": "n1"}); err == nil {
		t.Errorf("the busiest node that lives is %v", v)
	}
}

// TestCrashIsNamed: a scenario that cannot go on, because of a node that has crashed, says so.
func TestCrashIsNamed(t *testing.T) {
	for _, tt := range []struct {
		name string
		act  func(s *stage)
		want int
	}{
		{"crashed", func(*stage) {}, 1},
		{"killed", func(s *stage) { s.dead["n1"] = true }, 0},
		{"told to leave", func(s *stage) { s.left["n1"] = true }, 0},
		{"told to end", func(s *stage) { s.asked = time.Now() }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sc := scenario{name: "one", act: func(_ context.Context, _ *rehearsal, s *stage) error {
				n := crashed(t, "n1")
				s.nodes = append(s.nodes, n)
				tt.act(s)
				return errors.New("it cannot go on")
			}}
			r := rehearsal{jobs: 1, seconds: 5 * time.Second, median: map[string]time.Duration{}}
			got := sc.perform(t.Context(), &r, t.TempDir(), "none", func(string, ...any) {})
			named := slices.DeleteFunc(slices.Clone(got.violations), func(v violation) bool {
				return v.kind != wrongExit || !strings.Contains(v.what, "the last words of n1")
			})
			if len(named) != tt.want || len(got.violations) != tt.want+1 {
				t.Errorf("want it named %d times: %v", tt.want, got.violations)
			}
		})
	}
}

// TestWordsOfWhatWentWrong: an answer that is wrong is no error of its own, and none is printed.
func TestWordsOfWhatWentWrong(t *testing.T) {
	s := &stage{binary: "true", dir: t.TempDir(), redis: new(redistest.Server)}
	p := promotions{stage: s}
	if err := p.standBy(t.Context()); err == nil || !strings.Contains(err.Error(), "exit 0, not 5") || strings.Contains(err.Error(), "%!") {
		t.Errorf("a command that should have been refused: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := node{name: "n1", exited: make(chan struct{})}
	if err := n.gone(ctx); err == nil || !strings.Contains(err.Error(), "n1") || strings.Contains(err.Error(), "%!") {
		t.Errorf("a node that does not end: %v", err)
	}
}
