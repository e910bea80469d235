//go:build unix

package main

import (
	"testing"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// TestGuardsAreMarked: the source marks all guards that nodes can be built without.
func TestGuardsAreMarked(t *testing.T) {
	for _, l := range append(lacks, asserting) {
		if _, err := l.overlay(t.TempDir()); err != nil {
			t.Error(err)
		}
	}
}

// TestGuardIsMissed: a judge that says nothing, or something else, is blind.
func TestGuardIsMissed(t *testing.T) {
	l := lack{name: "g", says: []judge.Kind{judge.KindDouble, usurper}}
	for _, tt := range []struct {
		found []judge.Finding
		blind bool
	}{
		{nil, true},
		{[]judge.Finding{{Kind: judge.KindLost}}, true},
		{[]judge.Finding{{Kind: judge.KindLost}, {Kind: usurper}}, false},
	} {
		r := row{findings: tt.found}
		l.named(&r)
		if got := len(r.findings) == 1 && r.findings[0].Kind == blind; got != tt.blind || !got && len(r.findings) > 0 {
			t.Errorf("%v: %v", tt.found, r.findings)
		}
	}
}
