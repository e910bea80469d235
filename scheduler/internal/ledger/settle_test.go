package ledger_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

func TestSettle(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.complete(t, jobs.OutcomeFailed, tickClaim("a", "r1", 1))
		r.settle(t, settle.Settled, "a", "r1", jobs.OutcomeFailed) // the reply was lost
		r.settle(t, ledger.NoSuchRun, "a", "r2", jobs.OutcomeFailed)
		r.settle(t, ledger.Lost, "a", "r1", jobs.OutcomeSucceeded)
		first := r.now
		r.pass(t, time.Second)
		r.settle(t, ledger.Lost, "a", "r1", jobs.OutcomeCancelled)
		rows := r.rows(t, "a")
		if len(rows) != 1 || rows[0].Outcome != jobs.OutcomeFailed || rows[0].Late != fmt.Sprint("succeeded ", first) {
			t.Errorf("want one row, failed, with the first late report: %+v", rows)
		}
		long := strings.Repeat("ä", 1200) + "|\n"
		r.want(t, claim.Granted, tickClaim("a", "r3", 2))
		must(settle.Settle(t.Context(), r.led, []settle.Report{{Job: "a", Run: "r3", Outcome: jobs.OutcomeFailed, Reason: "a|b\nc", Error: long}}))
		r.settle(t, ledger.Lost, "a", "r3", jobs.OutcomeSucceeded) // finds its row whatever the error's text
		got := r.rows(t, "a")[1]
		if got.Reason != "a/b c" || got.Error != strings.Repeat("ä", 1022)+"..." || got.Late == "" {
			t.Errorf("row is %+v", got)
		}
		r.sound(t)
	})
}

func TestReap(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.want(t, claim.Granted, tickClaim("a", "r1", 1))
		granted := r.now
		reap := func(want ledger.Status, beat int64) {
			t.Helper()
			if got := must(settle.Reap(t.Context(), r.led, r.now, r.epoch(), []ledger.Run{{Job: "a", ID: "r1", Beat: beat}})); got[0] != want {
				t.Fatalf("reaped: %s, want %s", got[0], want)
			}
		}
		r.pass(t, ttl)
		reap(settle.Alive, 0) // until is now
		r.pass(t, time.Millisecond)
		reap(settle.Alive, 1)
		r.renew(t, "a", "r1", true) // lapsed, and still its holder's
		r.pass(t, ttl+time.Millisecond)
		reap(settle.Alive, 0)
		reap(settle.Reaped, 1)
		reap(settle.Gone, 1)
		r.renew(t, "a", "r1", false)
		r.settle(t, ledger.Lost, "a", "r1", jobs.OutcomeSucceeded)
		row := r.rows(t, "a")[0]
		if row.Outcome != jobs.OutcomeAbandoned || row.Reason != "lease lapsed" || row.Started != granted || row.At != r.now || row.Late != fmt.Sprint("succeeded ", r.now) {
			t.Errorf("row is %+v", row)
		}
		r.want(t, claim.Granted, tickClaim("a", "r2", 2))
		r.sound(t)
	})
}

func TestUnclaim(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		first := r.want(t, claim.Granted, tickClaim("a", "r1", 1))
		for _, c := range []struct {
			run  string
			want ledger.Status
		}{{"r1", settle.Returned}, {"r1", settle.Returned}, {"never granted", ledger.Lost}} {
			if got := must(settle.Unclaim(t.Context(), r.led, []settle.Return{{Job: "a", Run: c.run}})); got[0] != c.want {
				t.Fatalf("unclaim of %s: %s, want %s", c.run, got[0], c.want)
			}
		}
		r.want(t, claim.Stale, tickClaim("a", "r1", 1)) // a delayed copy: the id is burnt
		r.want(t, claim.Stale, pendingClaim("a", "r1"))
		r.settle(t, ledger.NoSuchRun, "a", "r1", jobs.OutcomeSucceeded)
		r.want(t, claim.JobBusy, tickClaim("a", "r2", 2)) // it holds the job while it waits; 2 was due before it was granted
		a := r.want(t, claim.Granted, pendingClaim("a", ledger.NextAttemptID("r1")))
		want := ledger.Run{Job: "a", Tick: noon + 1000, Shards: 1, Attempt: 1, Token: first.Token + 1, Node: "n1", NodeName: "alpha", Until: r.now + 5000,
			TTL: 5000, Prev: noon + 1000, Next: noon + 2000, Trigger: "schedule", Granted: r.now, Overlap: "s", Attempts: 1, Payload: []byte{}}
		if !reflect.DeepEqual(a.Run, want) {
			t.Errorf("granted %+v, want the record %+v", a, want)
		}
		if again := r.complete(t, jobs.OutcomeSucceeded, pendingClaim("a", ledger.NextAttemptID("r1"))); !reflect.DeepEqual(again, a) {
			t.Errorf("asked again: %+v, first %+v", again, a)
		}
		r.complete(t, jobs.OutcomeSucceeded, tickClaim("a", "r3", 2))
		r.sound(t)
	})
}

// TestSettleManyOutputs: reports with long outputs are settled by several script calls, and are
// answered in their order.
func TestSettleManyOutputs(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		var claims []claim.Claim
		for i := range 40 {
			job := fmt.Sprintf("job-%02d", i)
			r.create(t, job)
			claims = append(claims, tickClaim(job, "run-"+job, 1))
		}
		r.pass(t, 5*time.Second)
		must(claim.Send(t.Context(), r.led, node, r.now, claims))
		reports := each(claims, func(c claim.Claim) settle.Report {
			return settle.Report{Job: c.Job, Run: c.Run, Outcome: jobs.OutcomeSucceeded, Started: r.now, Ended: r.now, Output: make([]byte, jobs.MaxOutput+1)}
		})
		reports[38].Run = "nobody's"
		r.raw.take()
		for i, w := range must(settle.Settle(t.Context(), r.led, reports)) {
			if (w == settle.Settled) != (i != 38) {
				t.Errorf("report %d: %s", i, w)
			}
		}
		if calls := r.raw.take(); len(calls) != 3 {
			t.Errorf("%d calls for 40 outputs of 64 KiB, want 3", len(calls))
		}
		r.sound(t)
	})
}

// A failed run whose next try is another node's leads to one further attempt, which waits and holds
// its job; the attempts that are left for a crash do not bound it. A report that is repeated,
// before that attempt is granted or after it has ended, makes no second one.
func TestSettleForAnotherNode(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Second)
		r.want(t, claim.Granted, tickClaim("a", "r1", 1))
		report := settle.Report{Job: "a", Run: "r1", Outcome: jobs.OutcomeFailed, Started: r.now, Ended: r.now, Tries: 1, Error: "no", Rerun: true, RetryIn: 700 * time.Millisecond}
		next := ledger.NextAttemptID("r1")
		tell := func(want ledger.Status) {
			t.Helper()
			if got := must(settle.Settle(t.Context(), r.led, []settle.Report{report})); got[0] != want {
				t.Fatalf("settle: %s, want %s", got[0], want)
			}
		}
		tell(settle.Settled)
		tell(settle.Settled)
		again := pendingClaim("a", next)
		r.want(t, claim.Early, again)
		if e := r.entry(t, "a"); e.HolderRun != next {
			t.Errorf("the job is held by %q", e.HolderRun)
		}
		r.pass(t, 700*time.Millisecond)
		if a := r.want(t, claim.Granted, again); a.Run.Attempt != 2 || a.Run.Trigger != jobs.TriggerRerun.String() {
			t.Errorf("granted %+v", a.Run)
		}
		tell(settle.Settled)
		r.settle(t, settle.Settled, "a", next, jobs.OutcomeSucceeded)
		tell(settle.Settled)
		if open := must(query.InFlight(t.Context(), r.led, "a")); len(open) != 0 {
			t.Errorf("left: %+v", open)
		}
		if rows := r.rows(t, "a"); len(rows) != 2 || rows[0].Outcome != jobs.OutcomeFailed || rows[1].Attempt != 2 {
			t.Errorf("rows %+v", rows)
		}
		// A cancelled run is not tried again.
		r.pass(t, time.Second)
		r.want(t, claim.Granted, tickClaim("a", "r2", 2))
		if _, err := operate.Cancel(t.Context(), r.led, "a", "r2", "ops", ""); err != nil {
			t.Fatal(err)
		}
		report.Run = "r2"
		tell(settle.Settled)
		if open := must(query.InFlight(t.Context(), r.led, "a")); len(open) != 0 {
			t.Errorf("left: %+v", open)
		}
	})
}
