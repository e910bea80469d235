package ledger

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// TestKept: the last bytes of the output and the payload are kept beside the row, and leave with it.
func TestKept(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t", Payload: []byte("|\x00\xff")}))
		r.want(t, Granted, pendingClaim("a", "t"))
		output := append([]byte("cut off"), bytes.Repeat([]byte("|\n\xff"), jobs.MaxOutput/3)...)
		output = append(output, '!')
		must(r.led.Settle(t.Context(), []Report{{Job: "a", Run: "t", Outcome: jobs.OutcomeSucceeded, Output: output}}))
		r.settle(t, Lost, "a", "t", jobs.OutcomeFailed) // writes no output over it
		got, payload, err := r.led.Kept(t.Context(), "a", "t")
		if err != nil || !bytes.Equal(got, output[len(output)-jobs.MaxOutput:]) || string(payload) != "|\x00\xff" {
			t.Errorf("kept %d bytes of output, payload %q, %v", len(got), payload, err)
		}
		if got, payload, err := r.led.Kept(t.Context(), "a", "nobody"); len(got)+len(payload) != 0 || err != nil {
			t.Errorf("of nobody: %q, %q, %v", got, payload, err)
		}
		r.pass(t, time.Minute)
		for s := int64(1); s <= 40; s++ {
			r.runOne(t, "a", s)
		}
		if left := r.client.HGetAll(t.Context(), r.led.keys[0].kept).Val(); len(left) != 0 {
			t.Errorf("left when its row is gone: %v", left)
		}
	})
}

// TestCounts: every end of a run and every tick that did not run is counted, once, and stays counted.
func TestCounts(t *testing.T) {
	onBoth(t, Config{Partitions: 1, Keep: 1000}, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 4500*time.Millisecond)
		r.want(t, Granted, attempts(2, lateClaim("a", "r4", 1, 3)))
		r.pass(t, 2*time.Second)
		r.want(t, Skipped, tickClaim("a", "r5", 5))
		r.want(t, Skipped, tickClaim("a", "r6", 6))
		r.reap(t, "a", "r4")
		r.want(t, Granted, attempts(2, pendingClaim("a", Successor("r4"))))
		r.settle(t, Settled, "a", Successor("r4"), jobs.OutcomeTimedOut)
		r.settle(t, Settled, "a", Successor("r4"), jobs.OutcomeTimedOut)
		r.settle(t, Lost, "a", Successor("r4"), jobs.OutcomeFailed)
		r.pause(t, "a", Pause{})
		r.want(t, Passed, passing("a", "r", 0, paused(7, 8)))
		r.resume(t, "a")
		must(r.led.Trigger(t.Context(), "a", Trigger{Run: "t"}))
		must(r.led.Cancel(t.Context(), "a", "t", "ann", ""))
		must(r.led.Define(t.Context(), r.now, []Definition{{Job: "a", Digest: "d-new", Cursor: r.now + 60_000, WasDigest: "d-second",
			WasCursor: noon + 9000, Until: r.now / 1000 * 1000, Count: 4, Old: "@every|1s"}}))
		sum := map[jobs.Outcome]int64{}
		for _, row := range r.rows(t, "a") {
			if row.Ranged {
				sum[row.Outcome] += row.Count
			} else {
				sum[row.Outcome]++
			}
		}
		want := map[jobs.Outcome]int64{jobs.OutcomeMissed: 3, jobs.OutcomeSkipped: 2, jobs.OutcomeAbandoned: 1, jobs.OutcomeTimedOut: 1,
			jobs.OutcomePaused: 2, jobs.OutcomeCancelled: 1, jobs.OutcomeSuperseded: 4}
		if got := r.entry(t, "a").Counts; !maps.Equal(got, want) || !maps.Equal(sum, want) {
			t.Errorf("counted %v, in the rows %v, want %v", got, sum, want)
		}
		if note := r.rows(t, "a")[len(r.rows(t, "a"))-1].Note; note != "@every/1s" {
			t.Errorf("the old schedule is %q", note)
		}
		r.sound(t)
	})
}

// TestPostpone: a job that nobody holds is looked at again later, and at once when somebody holds it again.
func TestPostpone(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		due := func() int64 { return int64(r.client.ZScore(t.Context(), r.led.keys[0].due, "a").Val()) }
		postpone := func(cursor, until int64) {
			t.Helper()
			if err := r.led.Postpone(t.Context(), Late{Job: "a", Cursor: cursor}, until); err != nil {
				t.Fatal(err)
			}
		}
		r.create(t, "a")
		r.pass(t, time.Minute)
		seen := must(r.led.NewGaze().Look(t.Context(), r.now, 0)).Late
		if len(seen) != 1 || seen[0].Cursor != noon+1000 {
			t.Fatalf("late: %+v", seen)
		}
		postpone(noon+2000, r.now+9000) // not what stands there
		if due() != noon+1000 {
			t.Errorf("due at %d", due()-noon)
		}
		postpone(noon+1000, r.now+10_000)
		if due() != r.now+10_000 || len(must(r.led.NewGaze().Look(t.Context(), r.now, 0)).Late) != 0 {
			t.Errorf("due at %d", due()-noon)
		}
		postpone(r.now+10_000, r.now+20_000)
		if due() != r.now+20_000 {
			t.Errorf("due at %d", due()-noon)
		}
		must(r.led.Define(t.Context(), r.now, []Definition{{Job: "a", Digest: "d-second"}}))
		if due() != noon+1000 {
			t.Errorf("somebody holds it: due at %d", due()-noon)
		}
		postpone(noon+1000, r.now+10_000)
		r.runOne(t, "a", 1)
		if due() != noon+2000 {
			t.Errorf("it ran: due at %d", due()-noon)
		}
		if err := r.led.Postpone(t.Context(), Late{Job: "nobody", Cursor: 1}, r.now); err != nil {
			t.Errorf("unknown job: %v", err)
		}
	})
}
