//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

func TestSealedOff(t *testing.T) {
	closed := window{second(4), second(6)}
	started := map[string]time.Time{"before": second(3), "between": second(5)}
	for run, want := range map[string]int{"before": 0, "between": 1, "unknown": 1} {
		if got := sealedOff([]line{{run: run, at: second(5)}}, started, closed); len(got) != want {
			t.Errorf("%s: %v", run, got)
		}
	}
	if got := sealedOff([]line{{run: "unknown", at: second(7)}}, started, closed); len(got) > 0 {
		t.Errorf("after open: %v", got)
	}
}

func TestKept(t *testing.T) {
	left, there := goodStage(t).books, goodStage(t).books
	row := func(b books, n int) *judge.Row { return &b["each-01"].Rows[n] }
	row(left, 2).Outcome, row(there, 2).Outcome = jobs.OutcomeAbandoned, jobs.OutcomeAbandoned
	row(left, 2).Late = "lost 1795338239073"
	if wrong := left.kept(there); len(wrong) > 0 {
		t.Errorf("history that was copied: %v", wrong)
	}
	row(left, 3).Outcome = jobs.OutcomeFailed
	b := left["slow-1"]
	b.Open = []judge.Lease{{Job: "slow-1", Tick: second(10).UnixMilli()}}
	left["slow-1"] = b
	if wrong := left.kept(there); len(wrong) != 2 {
		t.Errorf("a run that was recorded after the copy, and one that goes on: %v", wrong)
	}
}
