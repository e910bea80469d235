//go:build unix

package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

func TestUsurped(t *testing.T) {
	reigns := []reign{{"old", window{second(0), second(5).Add(300 * time.Millisecond)}}, {"new", window{second(5), second(9)}}}
	started := map[string]time.Time{"early": second(5).Add(400 * time.Millisecond), "late": second(7)}
	for _, tt := range []struct {
		name  string
		line  line
		wrong bool
	}{
		{"in its time", line{label: "old", tick: second(4), at: second(4), run: "x"}, false},
		{"in the other's", line{label: "new", tick: second(4), at: second(4), run: "x"}, true},
		{"during the promotion", line{label: "old", tick: second(5), at: second(5).Add(200 * time.Millisecond), run: "x"}, false},
		{"after it, under way before", line{label: "old", tick: second(5), at: second(6), run: "early"}, false},
		{"after it, and not under way", line{label: "old", tick: second(5), at: second(6), run: "late"}, true},
		{"after it, of no record", line{label: "old", tick: second(5), at: second(6), run: "x"}, true},
		{"a tick that came after it", line{label: "old", tick: second(6), at: second(6), run: "early"}, true},
		{"after all", line{label: "new", tick: second(10), at: second(10), run: "x"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			wrong, inFlight := usurped([]line{tt.line}, started, reigns)
			if (len(wrong) == 1) != tt.wrong {
				t.Errorf("%v", wrong)
			}
			if want := tt.line.run == "early" && !tt.wrong; (inFlight == 1) != want {
				t.Errorf("%d in flight", inFlight)
			}
		})
	}
	run := func(token int64, label string) line {
		return line{job: "plan", label: label, token: token, phase: judge.Start}
	}
	all := []job{{name: "plan"}}
	if wrong := turns(all, []line{run(2, "new"), run(1, "old"), run(3, "new")}, reigns); len(wrong) > 0 {
		t.Errorf("one after the other: %v", wrong)
	}
	if wrong := turns(all, []line{run(1, "old"), run(2, "new"), run(3, "old"), run(4, "new")}, reigns); len(wrong) != 1 {
		t.Errorf("granted after the other generation's: %v", wrong)
	}
	if wrong := idle([]line{{label: "old", at: second(1)}}, reigns); len(wrong) != 1 {
		t.Errorf("a generation that ran nothing: %v", wrong)
	}
}

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
	row := func(b books, n int) *ledger.Row { return &b["each-01"].Rows[n] }
	row(left, 2).Outcome, row(there, 2).Outcome = jobs.OutcomeAbandoned, jobs.OutcomeAbandoned
	row(left, 2).Late = "lost 1795338239073"
	if wrong := left.kept(there); len(wrong) > 0 {
		t.Errorf("history that was copied: %v", wrong)
	}
	row(left, 3).Outcome = jobs.OutcomeFailed
	b := left["slow-1"]
	b.Open = []ledger.Lease{{Job: "slow-1", Tick: second(10).UnixMilli()}}
	left["slow-1"] = b
	if wrong := left.kept(there); len(wrong) != 2 {
		t.Errorf("a run that was recorded after the copy, and one that goes on: %v", wrong)
	}
}

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
