//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// TestCodes: the node that came back is none of those that were there before, however many these are.
func TestCodes(t *testing.T) {
	for each := 2; each <= 9; each++ {
		p := promotions{stage: &stage{}, each: each}
		for i := range each + 1 {
			p.lines = append(p.lines, line{node: fmt.Sprintf("old%d", i+1), label: "old", phase: judge.Start})
		}
		ran, back := p.codes()
		if ran["old"] != each+1 || back != 1 || len(p.findings) != 1 || !strings.Contains(p.findings[0].What, fmt.Sprintf("old%d", each+1)) {
			t.Errorf("%d nodes: ran %v, the one that came back %d: %v", each, ran, back, p.findings)
		}
	}
}
