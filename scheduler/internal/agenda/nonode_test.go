package agenda

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// TestNoNode: ticks of a job that no node can run are given up when they are later than
// start_within, or a day.
func TestNoNode(t *testing.T) {
	hour := time.Hour.Milliseconds()
	missed := func(first, last int64) ledger.SkippedRange {
		return ledger.SkippedRange{Outcome: jobs.OutcomeMissed, Reason: ledger.ReasonNoNode, First: first * hour, Last: last * hour, Count: last - first + 1, Next: (last + 1) * hour}
	}
	paused := func(first, last int64) ledger.SkippedRange {
		p := missed(first, last)
		p.Outcome, p.Reason = jobs.OutcomePaused, ledger.ReasonPaused
		return p
	}
	for name, x := range map[string]struct {
		within time.Duration
		pause  ledger.Window
		now    int64 // in hours
		want   []ledger.SkippedRange
		next   int64
	}{
		"not late enough":  {now: 30, next: 10},
		"some":             {now: 40, want: []ledger.SkippedRange{missed(10, 15)}, next: 16},
		"by start_within":  {now: 40, within: 2 * time.Hour, want: []ledger.SkippedRange{missed(10, 37)}, next: 38},
		"behind a pause":   {now: 40, pause: ledger.Window{From: 5 * hour, To: 13 * hour}, want: []ledger.SkippedRange{paused(10, 12), missed(13, 15)}, next: 16},
		"paused until now": {now: 40, pause: ledger.Window{From: 12 * hour}, want: []ledger.SkippedRange{missed(10, 11), paused(12, 40)}, next: 41},
	} {
		t.Run(name, func(t *testing.T) {
			j := jobs.Job{Name: "j", Schedule: "@every 1h", StartWithin: x.within}
			schedule, err := j.ParsedSchedule()
			if err != nil {
				t.Fatal(err)
			}
			got, next := NoNode(j, schedule, 10*hour, x.pause, x.now*hour)
			if len(got) != len(x.want) || next != x.next*hour {
				t.Fatalf("gives up %+v, and stands at %d h; want %+v and %d h", got, next/hour, x.want, x.next)
			}
			for i := range got {
				if got[i] != x.want[i] {
					t.Errorf("gives up %+v, want %+v", got[i], x.want[i])
				}
			}
		})
	}
}
