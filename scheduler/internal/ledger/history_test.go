package ledger_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// A row whose age is unreadable stays, and so do the rows behind it.
func TestShortHistoryBehindAForeignRow(t *testing.T) {
	onBoth(t, ledger.Config{Partitions: 1, Keep: 100, KeepFor: time.Hour}, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 24*time.Hour)
		if err := r.client.RPush(t.Context(), r.led.Keys[0].History+"a", "2|R|newer").Err(); err != nil {
			t.Fatal(err)
		}
		for s := int64(1); s <= 10; s++ {
			r.runOne(t, "a", s)
			r.pass(t, 2*time.Hour)
		}
		if n := r.client.LLen(t.Context(), r.led.Keys[0].History+"a").Val(); n != 11 {
			t.Errorf("%d rows, want all", n)
		}
	})
}

// TestKept: the last bytes of the output and the payload are kept beside the row, and leave with
// it.
func TestKept(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		must(operate.Trigger(t.Context(), r.led, "a", operate.TriggerRequest{Run: "t", Payload: []byte("|\x00\xff")}))
		r.want(t, claim.Granted, pendingClaim("a", "t"))
		output := append([]byte("cut off"), bytes.Repeat([]byte("|\n\xff"), jobs.MaxOutput/3)...)
		output = append(output, '!')
		must(settle.Settle(t.Context(), r.led, []settle.Report{{Job: "a", Run: "t", Outcome: jobs.OutcomeSucceeded, Output: output}}))
		r.settle(t, ledger.Lost, "a", "t", jobs.OutcomeFailed) // writes no output over it
		got, payload, err := query.Kept(t.Context(), r.led, "a", "t")
		if err != nil || !bytes.Equal(got, output[len(output)-jobs.MaxOutput:]) || string(payload) != "|\x00\xff" {
			t.Errorf("kept %d bytes of output, payload %q, %v", len(got), payload, err)
		}
		if got, payload, err := query.Kept(t.Context(), r.led, "a", "nobody"); len(got)+len(payload) != 0 || err != nil {
			t.Errorf("of nobody: %q, %q, %v", got, payload, err)
		}
		r.pass(t, time.Minute)
		for s := int64(1); s <= 40; s++ {
			r.runOne(t, "a", s)
		}
		if left := r.client.HGetAll(t.Context(), r.led.Keys[0].Kept).Val(); len(left) != 0 {
			t.Errorf("left when its row is gone: %v", left)
		}
	})
}

// TestRowsOfNoRunsPushNothingOut: the history keeps so many runs, whatever other rows it has, and
// the time of a job's last success is kept.
func TestRowsOfNoRunsPushNothingOut(t *testing.T) {
	cfg := ledger.Config{Partitions: 1, Keep: 16, KeepFor: 1000 * time.Hour}
	hours := func(r *rig, n int64) int64 { return r.now - r.now%3_600_000 + n*3_600_000 }
	// change replaces the definition of job a, whose next tick then comes in so many hours.
	change := func(t *testing.T, r *rig, digest string, n int64, same bool) {
		t.Helper()
		e := r.entry(t, "a")
		d := define.Definition{Job: "a", Digest: digest, Text: []byte("{}"), WasDigest: "d-second", Old: "@hourly", Same: same}
		if d.Digest == "d-second" {
			d.WasDigest = "d-other"
		}
		if !same {
			d.Cursor, d.WasCursor, d.Upcoming = hours(r, n), e.Cursor, e.Cursor
		}
		if got := must(define.Define(t.Context(), r.led, r.now, []define.Definition{d})); got[0].Status != "replaced" {
			t.Fatalf("%+v: %+v", d, got[0])
		}
	}
	runs := func(t *testing.T, r *rig, want, most int) {
		t.Helper()
		rows, n := r.rows(t, "a"), 0
		for _, row := range rows {
			if !row.Ranged {
				n++
			}
		}
		if n != want || len(rows)-n > most {
			t.Errorf("%d rows of runs, want %d, and %d of none, want %d at most", n, want, len(rows)-n, most)
		}
	}
	begin := func(t *testing.T, r *rig) {
		t.Helper()
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		r.complete(t, jobs.OutcomeFailed, tickClaim("a", "a-0", 1))
		c := tickClaim("a", "a-1", 2)
		c.Next = hours(r, 12)
		r.pass(t, time.Second)
		r.complete(t, jobs.OutcomeSucceeded, c)
	}
	t.Run("definitions", func(t *testing.T) {
		onBoth(t, cfg, func(t *testing.T, r *rig) {
			begin(t, r)
			for i := range int64(60) {
				change(t, r, "d-other", 8+i%3, i%5 == 0)
				r.pass(t, time.Second)
				change(t, r, "d-second", 12, i%7 == 0)
			}
			runs(t, r, 2, 1) // no tick came due meanwhile: one row leads from the first definition to the last
			r.sound(t)
		})
	})
	t.Run("ranges", func(t *testing.T) {
		onBoth(t, cfg, func(t *testing.T, r *rig) {
			begin(t, r)
			change(t, r, "d-other", 1, false)
			change(t, r, "d-second", 1, false)
			r.pass(t, 200*time.Hour)
			for i := range 180 {
				at := r.entry(t, "a").Cursor
				p := ledger.SkippedRange{Outcome: jobs.OutcomeMissed, Reason: []string{ledger.ReasonLate, ledger.ReasonStartWithin}[i%2], First: at, Last: at, Count: 1, Next: at + 3_600_000}
				r.want(t, claim.RecordedOnly, claim.Claim{Job: "a", Digest: "d-second", Run: "x", TTL: ttl, From: at, Skipped: []ledger.SkippedRange{p}, Next: p.Next})
				if i == 40 {
					runs(t, r, 2, 42)
				}
			}
			if rows := r.rows(t, "a"); len(rows) > 4*16+16 {
				t.Errorf("%d rows are kept", len(rows))
			}
			if e := r.entry(t, "a"); e.Won == 0 {
				t.Errorf("the entry forgot that the job succeeded: %+v", e)
			}
		})
	})
	t.Run("last success", func(t *testing.T) {
		onBoth(t, cfg, func(t *testing.T, r *rig) {
			begin(t, r)
			succeeded := r.rows(t, "a")[1].At
			r.pass(t, 100*time.Hour)
			for range 48 {
				at := r.entry(t, "a").Cursor
				r.complete(t, jobs.OutcomeFailed, claim.Claim{Job: "a", Digest: "d-second", Run: fmt.Sprint("f-", at), TTL: ttl, From: at, Tick: at, Next: at + 3_600_000})
			}
			runs(t, r, 18, 0) // 16, and two since the history was trimmed last
			if e := r.entry(t, "a"); e.Won != succeeded {
				t.Errorf("the last success was at %d, the entry has %d", succeeded, e.Won)
			}
		})
	})
}
