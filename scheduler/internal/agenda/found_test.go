package agenda

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// Runs of a backfill have time: other pending runs of the same job go first, also among more
// backfill runs than a node takes of a job. They are claimed as under overlap allow.
func TestBackfillsGoLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(1, "job")
		Registered{Jobs: w.jobs, Cursors: []int64{time.Now().Add(time.Hour).UnixMilli()}}.apply(w.Agenda)
		var pending []ledger.Run
		for i := range 2 * pendingShare {
			p := waits(fmt.Sprintf("job/fill-%02d", i))
			p.Trigger = jobs.TriggerBackfill.String()
			pending = append(pending, p)
		}
		byHand, holds := waits("job/by-hand"), waits("job/holds")
		holds.ReservesJob = true
		fill := pending[0]
		w.found(append(pending, byHand, holds)...)
		if c := pendingClaim(w.states[w.jobs[0]], &fill, w.Clock.Now()); c.Overlap != jobs.OverlapAllow || !c.Pending {
			t.Errorf("the claim is %+v", c)
		}
		got := w.asked(claim.Answer{Verdict: claim.Granted})
		if len(got) != pendingShare || got[0] != "job/holds" || got[1] != "job/by-hand" || got[2] != "job/fill-00" {
			t.Errorf("asked for are %d: %v", len(got), got)
		}
	})
}
