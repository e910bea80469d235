//go:build unix

package main

import (
	"testing"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

func TestRanInactive(t *testing.T) {
	periods := []activePeriod{{"old", window{second(0), second(5).Add(300 * time.Millisecond)}}, {"new", window{second(5), second(9)}}}
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
			wrong, inFlight := ranInactive([]line{tt.line}, started, periods)
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
	if wrong := turns(all, []line{run(2, "new"), run(1, "old"), run(3, "new")}, periods); len(wrong) > 0 {
		t.Errorf("one after the other: %v", wrong)
	}
	if wrong := turns(all, []line{run(1, "old"), run(2, "new"), run(3, "old"), run(4, "new")}, periods); len(wrong) != 1 {
		t.Errorf("granted after the other generation's: %v", wrong)
	}
	if wrong := idle([]line{{label: "old", at: second(1)}}, periods); len(wrong) != 1 {
		t.Errorf("a generation that ran nothing: %v", wrong)
	}
}
