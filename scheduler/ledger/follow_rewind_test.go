package ledger

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// failsRewound has a tick succeed, somebody follow its job, the job set back to before the tick, and the tick fail.
func (r *rig) failsRewound(t *testing.T, crash bool) {
	t.Helper()
	r.create(t, "a")
	r.pass(t, time.Minute)
	r.runOne(t, "a", 1)
	must(r.led.Define(t.Context(), r.now, []Definition{{Job: "b", Digest: "d-after", Text: []byte(`{"name":"b","after":"a"}`)}}))
	if err := r.led.Follow(t.Context(), "a", "b"); err != nil {
		t.Fatal(err)
	}
	must(r.led.Rewind(t.Context(), r.now, Rewind{Job: "a", Digest: "d-second", From: noon + 2000, To: noon + 1000}))
	r.want(t, Granted, attempts(3, tickClaim("a", "again", 1)))
	run := "again"
	if crash {
		r.reap(t, "a", run)
		run = Successor(run)
		r.want(t, Granted, attempts(3, pendingClaim("a", run)))
	}
	r.settle(t, Settled, "a", run, jobs.OutcomeFailed)
	r.relayAll(t)
}

// What becomes of a tick that its job was set back to is told as if it had not succeeded before, also when that comes of a later attempt:
// who came to follow the job meanwhile has heard of nothing else.
func TestFollowARewoundTick(t *testing.T) {
	for name, crash := range map[string]bool{"fails": false, "crashes, then fails": true} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.failsRewound(t, crash)
				r.tale(t, "b", "skipped 1-1 x1 upstream failed")
				r.sound(t)
			})
		})
	}
	t.Run("the success from before counts", func(t *testing.T) { // a mutant, too seldom in traces
		useScripts(t, append(steered, edit{"prelude", `if to and tonumber(to) <= tonumber(tick) then`, `if false then`})...)
		r := realRig(t, oneConfig)
		r.failsRewound(t, true)
		if rows := r.rows(t, "b"); len(rows) > 0 {
			t.Errorf("the changed script tells of the failure all the same: %+v; this test proves nothing", rows)
		}
	})
}
