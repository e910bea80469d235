package ledger

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func TestSettle(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, time.Minute)
		r.complete(t, jobs.OutcomeFailed, tickClaim("a", "r1", 1))
		r.settle(t, Settled, "a", "r1", jobs.OutcomeFailed) // the reply was lost
		r.settle(t, NoSuchRun, "a", "r2", jobs.OutcomeFailed)
		r.settle(t, Lost, "a", "r1", jobs.OutcomeSucceeded)
		first := r.now
		r.pass(t, time.Second)
		r.settle(t, Lost, "a", "r1", jobs.OutcomeCancelled)
		rows := r.rows(t, "a")
		if len(rows) != 1 || rows[0].Outcome != jobs.OutcomeFailed || rows[0].Late != fmt.Sprint("succeeded ", first) {
			t.Errorf("want one row, failed, with the first late report: %+v", rows)
		}
		long := strings.Repeat("ä", 1200) + "|\n"
		r.want(t, Granted, tickClaim("a", "r3", 2))
		must(r.led.Settle(t.Context(), []Report{{Job: "a", Run: "r3", Outcome: jobs.OutcomeFailed, Reason: "a|b\nc", Error: long}}))
		r.settle(t, Lost, "a", "r3", jobs.OutcomeSucceeded) // finds its row whatever the error says
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
		r.want(t, Granted, tickClaim("a", "r1", 1))
		granted := r.now
		reap := func(want Word, beat int64) {
			t.Helper()
			if got := must(r.led.Reap(t.Context(), r.now, r.identity, []Lease{{Job: "a", Run: "r1", Beat: beat}})); got[0] != want {
				t.Fatalf("reaped: %s, want %s", got[0], want)
			}
		}
		r.pass(t, ttl)
		reap(Alive, 0) // until is now
		r.pass(t, time.Millisecond)
		reap(Alive, 1)
		r.renew(t, "a", "r1", true) // lapsed, and still its holder's
		r.pass(t, ttl+time.Millisecond)
		reap(Alive, 0)
		reap(Reaped, 1)
		reap(Gone, 1)
		r.renew(t, "a", "r1", false)
		r.settle(t, Lost, "a", "r1", jobs.OutcomeSucceeded)
		row := r.rows(t, "a")[0]
		if row.Outcome != jobs.OutcomeAbandoned || row.Reason != "lease lapsed" || row.Started != granted || row.At != r.now || row.Late != fmt.Sprint("succeeded ", r.now) {
			t.Errorf("row is %+v", row)
		}
		r.want(t, Granted, tickClaim("a", "r2", 2))
		r.sound(t)
	})
}
