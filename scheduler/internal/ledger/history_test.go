package ledger

import (
	"bytes"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// A row whose age cannot be told stays, and those behind it.
func TestShortHistoryBehindAForeignRow(t *testing.T) {
	onBoth(t, Config{Partitions: 1, Keep: 100, KeepFor: time.Hour}, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 24*time.Hour)
		if err := r.client.RPush(t.Context(), r.led.keys[0].history+"a", "2|R|newer").Err(); err != nil {
			t.Fatal(err)
		}
		for s := int64(1); s <= 10; s++ {
			r.runOne(t, "a", s)
			r.pass(t, 2*time.Hour)
		}
		if n := r.client.LLen(t.Context(), r.led.keys[0].history+"a").Val(); n != 11 {
			t.Errorf("%d rows, want all", n)
		}
	})
}

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
