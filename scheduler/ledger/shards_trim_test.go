package ledger

import (
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

// The rows of a tick's shards leave the history before the tick's own. What gives the tick another attempt then still knows
// how many its shards had.
func TestAttemptsOfATrimmedTick(t *testing.T) {
	for name, anew := range map[string]func(t *testing.T, r *rig) string{
		"rerun": func(t *testing.T, r *rig) string {
			id := must(r.led.Rerun(t.Context(), "a", "x"))
			r.want(t, Opened, sharded(14, pendingClaim("a", id)))
			return id
		},
		"rewind": func(t *testing.T, r *rig) string {
			if word := must(r.led.Rewind(t.Context(), r.now, Rewind{Job: "a", Digest: "d-second", From: noon + 17000, To: noon + 1000})); word != Rewound {
				t.Fatal(word)
			}
			r.want(t, Opened, sharded(14, tickClaim("a", "y", 1)))
			return "y"
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, time.Minute)
				r.want(t, Opened, sharded(14, tickClaim("a", "x", 1)))
				run := "x.0"
				for range 2 { // it crashes twice
					r.want(t, Granted, attempts(3, shardAgain("a", run)))
					r.reap(t, "a", run)
					run = Successor(run)
				}
				r.want(t, Granted, attempts(3, shardAgain("a", run)))
				r.settle(t, Settled, "a", run, jobs.OutcomeSucceeded)
				for shard := 1; shard < 14; shard++ {
					r.want(t, Granted, shardClaim("a", "x", shard))
					r.settle(t, Settled, "a", ShardRun("x", shard), jobs.OutcomeSucceeded)
				}
				r.pass(t, time.Minute)
				for s := int64(2); s <= 16; s++ {
					r.runOne(t, "a", s)
				}
				if rows := r.rows(t, "a"); !rows[0].Whole {
					t.Fatalf("the history begins with %+v", rows[0])
				}
				if a := r.want(t, Granted, shardClaim("a", anew(t, r), 0)); a.Run.Attempt != 4 {
					t.Errorf("attempt %d, after three", a.Run.Attempt)
				}
			})
		})
	}
}
