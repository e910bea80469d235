package ledger_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// TestRecall: nodes' reports of a lost job decide where it begins: the latest counts, whenever the
// job is registered.
func TestRecall(t *testing.T) {
	for name, tell := range map[string]func(t *testing.T, r *rig){
		"told, then registered": func(t *testing.T, r *rig) { r.recall(t, 4, nil); r.create(t, "a") },
		"registered, then told": func(t *testing.T, r *rig) { r.create(t, "a"); r.recall(t, 4, nil) },
		"the latest last":       func(t *testing.T, r *rig) { r.recall(t, 2, nil); r.create(t, "a"); r.recall(t, 4, nil) },
		"the latest first":      func(t *testing.T, r *rig) { r.recall(t, 4, nil); r.create(t, "a"); r.recall(t, 2, nil) },
		"all of them before":    func(t *testing.T, r *rig) { r.recall(t, 4, nil); r.recall(t, 2, nil); r.create(t, "a") },
		"of another definition": func(t *testing.T, r *rig) {
			r.create(t, "a")
			must(epoch.Recall(t.Context(), r.led, r.now, []epoch.KnownCursor{{Job: "a", Digest: "d-other", Cursor: noon + 1000, Confirmed: true}}))
			r.recall(t, 4, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.pass(t, 10*time.Second)
				tell(t, r)
				if e := r.entry(t, "a"); e.Cursor != noon+4000 || e.Base != noon+4000 {
					t.Fatalf("the job begins at %+v", e)
				}
				r.want(t, claim.Granted, tickClaim("a", "r4", 4))
				r.recall(t, 2, nil) // too late: the report has been used, and the job goes on
				r.want(t, claim.Stale, tickClaim("a", "r2", 2))
				r.sound(t)
			})
		})
	}
}

// A node without claims of a job's ticks works its cursor out, and may be beyond ticks that were
// not granted. A cursor that was read from Redis counts more, whichever is reported first.
func TestWorkedOutCursorYields(t *testing.T) {
	for name, first := range map[string]bool{"worked out first": true, "worked out last": false} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.pass(t, 10*time.Second)
				workedOut := func() {
					must(epoch.Recall(t.Context(), r.led, r.now, []epoch.KnownCursor{{Job: "a", Digest: "d-second", Cursor: noon + 7000}}))
				}
				if first {
					workedOut()
				}
				r.recall(t, 4, nil)
				r.create(t, "a")
				workedOut()
				if e := r.entry(t, "a"); e.Cursor != noon+4000 || e.Base != noon+4000 {
					t.Errorf("the job begins at %+v", e)
				}
				r.sound(t)
			})
		})
	}
}

// Nodes of an older version read and write the same mark: '1' or ” and the cursor, read from Redis
// or not. A report of an older version after a newer one counts as worked out.
func TestMarkOfAnOlderVersion(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx, k := t.Context(), r.led.Keys[0]
		r.pass(t, 10*time.Second)
		r.recall(t, 4, nil)
		mark := func() string { return r.client.HGet(ctx, k.Anew, "a|d-second").Val() }
		if got, want := mark(), fmt.Sprint("|", noon+4000); got != want {
			t.Errorf("the mark is %q, want %q", got, want)
		}
		r.create(t, "a")
		if got, want := mark(), fmt.Sprint("1|", noon+4000); got != want {
			t.Errorf("with the job made, the mark is %q, want %q", got, want)
		}
		r.client.HSet(ctx, k.Anew, "a|d-second", fmt.Sprint("1|", noon+7000))
		r.recall(t, 5, nil)
		if e := r.entry(t, "a"); e.Cursor != noon+5000 {
			t.Errorf("the job begins at %+v", e)
		}
	})
}

// Each node has some shards of a sharded job's tick: the latest report counts.
func TestShardedCursorIsTheLatest(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.pass(t, 10*time.Second)
		for _, known := range []epoch.KnownCursor{{Cursor: noon + 7000}, {Cursor: noon + 4000, Confirmed: true}} {
			known.Job, known.Digest, known.Sharded = "a", "d-second", true
			must(epoch.Recall(t.Context(), r.led, r.now, []epoch.KnownCursor{known}))
		}
		r.create(t, "a")
		if e := r.entry(t, "a"); e.Cursor != noon+7000 {
			t.Errorf("the job begins at %+v", e)
		}
	})
}

// TestRecallAfterAClaim: a node without reports has registered the job anew and run it: the ticks
// before that are recorded.
func TestRecallAfterAClaim(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.pass(t, 5*time.Second)
		must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: "a", Digest: "d-second", Cursor: noon + 6000, Text: []byte("{}")}}))
		r.pass(t, 1100*time.Millisecond)
		r.want(t, claim.Granted, tickClaim("a", "r6", 6))
		if got, want := r.recall(t, 3, nil), []epoch.Recalled{{Status: epoch.Before, Cursor: noon + 6000}}; !reflect.DeepEqual(got, want) {
			t.Fatalf("answered %+v, want %+v", got, want)
		}
		r.recall(t, 3, &ledger.SkippedRange{First: noon + 3000, Last: noon + 5000, Count: 3})
		r.recall(t, 3, &ledger.SkippedRange{First: noon + 3000, Last: noon + 5000, Count: 3})
		if e := r.entry(t, "a"); e.Base != noon+3000 || e.Cursor != noon+7000 {
			t.Errorf("the chain is %+v", e)
		}
		r.tale(t, "a", "missed 3-5 x3 failover")
		r.sound(t)
	})
}

// TestRecallOfARollback: a Redis that has lost the last steps of a job runs no tick again, and
// records the ticks without a report.
func TestRecallOfARollback(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1100*time.Millisecond)
		r.runOne(t, "a", 1)
		r.pass(t, time.Minute) // that it was made is no news any more
		r.client.Del(t.Context(), r.led.Keys[0].Anew)
		worked := epoch.KnownCursor{Job: "a", Digest: "d-second", Cursor: noon + 5000}
		if got := must(epoch.Recall(t.Context(), r.led, r.now, []epoch.KnownCursor{worked})); got != nil {
			t.Errorf("what is worked out moves no cursor: %+v", got)
		}
		if got, want := r.recall(t, 5, nil), []epoch.Recalled{{Status: epoch.Behind, Cursor: noon + 2000}}; !reflect.DeepEqual(got, want) {
			t.Fatalf("answered %+v, want %+v", got, want)
		}
		for range 2 {
			r.recall(t, 5, &ledger.SkippedRange{First: noon + 2000, Last: noon + 4000, Count: 3})
		}
		if got := r.recall(t, 1, nil); got != nil {
			t.Errorf("a node that knows less: %+v", got)
		}
		r.tale(t, "a", "succeeded 1", "missed 2-4 x3 failover")
		r.want(t, claim.Granted, tickClaim("a", "r5", 5))
		r.sound(t)
	})
}

// A run that was granted by another definition is restored to a job that was created anew. A node
// with a cursor from before that run does not take the job back to the run's tick.
func TestRecallOfATickWhoseRunIsThere(t *testing.T) {
	for _, ended := range []bool{false, true} {
		t.Run(fmt.Sprint("ended ", ended), func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				before := r.backup(t)
				r.create(t, "a")
				r.pass(t, 1100*time.Millisecond)
				l := r.granted(t, tickClaim("a", "r1", 1))
				r.failover(t, before)
				r.pass(t, time.Second)
				must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: "a", Digest: "d-second", Text: []byte("{}"), Cursor: noon + 3000}}))
				r.says(t, epoch.Restored, epoch.Assertion{Digest: "d-other", Run: l})
				if ended {
					r.ends(t, settle.Settled, l, jobs.OutcomeSucceeded)
				}
				if got, want := r.recall(t, 1, nil), []epoch.Recalled{{Status: epoch.After, Cursor: noon + 1000}}; !reflect.DeepEqual(got, want) {
					t.Fatalf("answered %+v, want %+v", got, want)
				}
				if got := r.recall(t, 2, nil); got != nil {
					t.Fatalf("answered %+v", got)
				}
				if e := r.entry(t, "a"); e.Cursor != noon+2000 || e.Base != noon+2000 {
					t.Errorf("the job begins at %+v", e)
				}
				r.want(t, claim.Stale, tickClaim("a", "r9", 1))
				r.sound(t)
			})
		})
	}
}

// recall reports job a's cursor, a second after noon.
func (r *rig) recall(t *testing.T, second int64, gap *ledger.SkippedRange) []epoch.Recalled {
	t.Helper()
	return must(epoch.Recall(t.Context(), r.led, r.now, []epoch.KnownCursor{{Job: "a", Digest: "d-second", Cursor: noon + second*1000, Confirmed: true, Gap: gap}}))
}
