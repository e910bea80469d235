package scheduler_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler"
	"github.com/escapement/escapement/scheduler/ledger"
)

// A range begins before the instant that is asked for, and has ticks since.
func TestListSinceWithinARange(t *testing.T) {
	bubble(t, func(t *testing.T, c *cluster, server *redistest.Embedded) {
		b := keepBooks(t, server, jobs.Job{Name: "job", Schedule: "* * * * *"})
		i, first := c.inspector(), b.def.Cursor
		time.Sleep(time.Hour)
		last, next := first+9*60_000, first+10*60_000
		b.claim(ledger.Passed, ledger.Claim{Run: "r", From: first, Next: next,
			Passes: []ledger.Pass{{Outcome: jobs.OutcomeMissed, Reason: ledger.ReasonLate, First: first, Last: last, Count: 10, Next: next}}})
		for _, tt := range []struct {
			since int64
			want  int
		}{{first, 1}, {first + 1, 1}, {last, 1}, {last + 1, 0}} {
			list := must[scheduler.RunList](t)(i.List(t.Context(), scheduler.RunFilter{Since: time.UnixMilli(tt.since)}))
			if len(list.Runs) != tt.want || list.Matched != tt.want {
				t.Errorf("since %d ms after its first tick: %+v, want %d", tt.since-first, list, tt.want)
			}
		}
	})
}
