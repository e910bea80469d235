package ledger_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// A partition that has lost everything, its gate or its incarnation is another epoch: a node of the
// previous epoch is granted nothing, and no run is ended or renewed, until the node has noticed.
func TestLossIsAnotherEpoch(t *testing.T) {
	lose := map[string]func(ctx context.Context, r *rig) error{
		"nothing":         func(context.Context, *rig) error { return nil },
		"everything":      func(ctx context.Context, r *rig) error { return r.client.FlushAll(ctx).Err() },
		"the gate":        func(ctx context.Context, r *rig) error { return r.client.Del(ctx, r.led.Keys[0].Gate).Err() },
		"the incarnation": func(ctx context.Context, r *rig) error { return r.client.Del(ctx, r.led.Keys[0].Incarnation).Err() },
	}
	for what, do := range lose {
		t.Run(what, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, 1500*time.Millisecond)
				run := r.granted(t, tickClaim("a", "r1", 1))
				known := r.epoch()
				if err := do(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				r.clock(t, r.now*1000, r.identity) // which was lost too
				for call, do := range callsOf(r, known, run) {
					if err := do(t.Context()); what == "nothing" && err != nil || what != "nothing" && !errors.Is(err, ledger.ErrServer) && !errors.Is(err, ledger.ErrClock) {
						t.Errorf("%s: %v", call, err)
					}
				}
			})
		})
	}
}

// callsOf are calls of a node in an epoch that change nothing for other calls.
func callsOf(r *rig, epochID string, run ledger.Run) map[string]func(ctx context.Context) error {
	l := r.led.At(epochID)
	return map[string]func(ctx context.Context) error{
		"claim": func(ctx context.Context) error {
			_, err := claim.Send(ctx, l, node, r.now, []claim.Claim{tickClaim("a", "r2", 2)})
			return err
		},
		"renew": func(ctx context.Context) error {
			_, err := settle.Renew(ctx, l, []locking.Renewal{{Name: run.Job, Owner: run.ID, Token: run.Token, TTL: ttl}})
			return err
		},
		"settle": func(ctx context.Context) error {
			_, err := settle.Settle(ctx, l, []settle.Report{{Job: "a", Run: "nobody's"}})
			return err
		},
		"unclaim": func(ctx context.Context) error {
			_, err := settle.Unclaim(ctx, l, []settle.Return{{Job: "a", Run: "nobody's"}})
			return err
		},
		"feed": func(ctx context.Context) error {
			_, _, err := backfill.Feed(ctx, l, ledger.Backfill{Job: "a"}, "d-second", 1, nil)
			return err
		},
		"reap": func(ctx context.Context) error {
			_, err := settle.Reap(ctx, l, r.now, epochID, []ledger.Run{{Job: "a", ID: "nobody's"}})
			return err
		},
		"reassert": func(ctx context.Context) error {
			_, err := epoch.Reassert(ctx, l, r.now, []epoch.Assertion{of(run)})
			return err
		},
		"recall": func(ctx context.Context) error {
			_, err := epoch.Recall(ctx, l, r.now, []epoch.KnownCursor{{Job: "a", Digest: "d-second", Cursor: run.Next}})
			return err
		},
		"save": func(ctx context.Context) error { return settle.Save(ctx, l, epochID, run, "", []byte("x")) },
	}
}

// Opening a namespace makes the missing incarnations, and restoring the namespace marks the
// incarnations that it makes; existing ones stay.
func TestIncarnation(t *testing.T) {
	onBoth(t, ledger.Config{Partitions: 2}, func(t *testing.T, r *rig) {
		ctx, n := t.Context(), 0
		cfg := ledger.Config{Namespace: testNS, NewID: func() string { n++; return "id" }}
		l := must(ledger.Join(ctx, r.client, cfg))
		held := func(part int) string { return must(l.Sample(ctx)).Incarnations[part] }
		if a, b := held(0), held(1); a != rigIncarnation || b != rigIncarnation || n > 1 {
			t.Fatalf("opening what is there: %q and %q", a, b)
		}
		r.client.Del(ctx, l.Keys[0].Gate)
		r.client.Del(ctx, l.Keys[1].Incarnation)
		if a, b := held(0), held(1); a != "" || b != "" {
			t.Fatalf("lost: %q and %q", a, b)
		}
		must(l.Restore(ctx, ""))
		for part := range 2 {
			at, lost := ledger.MadeAfterLoss(held(part))
			if !lost || at.UnixMilli() != r.now {
				t.Errorf("restored: %q", held(part))
			}
		}
		was := held(0)
		for _, id := range []string{"another", ""} {
			if _, err := l.Supersede(ctx, 0, id); err != nil || held(0) != was {
				t.Errorf("%q superseded: %q, %v", id, held(0), err)
			}
		}
		r.pass(t, time.Second)
		made, err := l.Supersede(ctx, 0, was, "runs", "due")
		if _, lost := ledger.MadeAfterLoss(held(0)); !made || err != nil || !lost || !slices.Equal(ledger.LackedBefore(held(0)), []string{"runs", "due"}) {
			t.Errorf("superseded: %q, %v", held(0), err)
		}
		r.client.FlushAll(ctx)
		r.clock(t, r.now*1000, r.identity)
		must(ledger.Join(ctx, r.client, ledger.Config{Namespace: testNS, Partitions: 2, NewID: cfg.NewID}))
		if a := held(0); a != "id" {
			t.Errorf("made anew: %q", a)
		}
	})
}

// Where a move has closed the namespace, a lost gate is not made again: the new gate would be open.
func TestGateOfAMoveIsNotMadeAnew(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx := t.Context()
		for move, made := range map[string]bool{
			"1|0191f1a2|from|sealed|there|1": false, "1|0191f1a2|to|filling|there|1": false, "1|0191f1a2|to|open|there|1": true, "what?": false,
		} {
			r.client.HSet(ctx, ledger.NamespaceKeys(testNS).Control, "move", move)
			r.client.Del(ctx, r.led.Keys[0].Gate)
			_, err := r.led.Restore(ctx, "")
			if err != nil {
				t.Errorf("%s: %v", move, err)
			}
			if got := r.client.Get(ctx, r.led.Keys[0].Gate); errors.Is(got.Err(), redis.Nil) == made {
				t.Errorf("%s: the gate is %q", move, got.Val())
			}
		}
	})
}

// A job's entry is lost, and its run is not. That is another epoch, in which the run's node reports
// the run: the job goes on from its cursor, held by that run.
func TestEntryLost(t *testing.T) {
	for name, c := range map[string]struct {
		begin func(t *testing.T, r *rig) ledger.Run
		open  string
	}{
		"a run": {func(t *testing.T, r *rig) ledger.Run { return r.granted(t, tickClaim("a", "r1", 1)) }, "r1"},
		"a shard": {func(t *testing.T, r *rig) ledger.Run {
			r.want(t, claim.Opened, sharded(2, tickClaim("a", "r1", 1)))
			return r.granted(t, shardClaim("a", "r1", 0))
		}, "r1"},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				ctx := t.Context()
				r.create(t, "a")
				r.create(t, "b")
				r.pass(t, 3*time.Second)
				run := c.begin(t, r)
				r.client.HDel(ctx, r.led.Keys[0].Jobs, "a")
				got := must(define.Define(ctx, r.led, r.now, []define.Definition{{Job: "a", Digest: "d-second", Cursor: noon + 1000}}))[0]
				epochID := func() string { return ledger.EpochID(r.identity, must(r.led.Sample(ctx)).Incarnations[0]) }
				if got.Status != "created" || ledger.Incarnation(epochID()) != "" {
					t.Fatalf("%s in epoch %q", got.Status, epochID())
				}
				must(r.led.Restore(ctx, ""))
				a := must(epoch.Reassert(ctx, r.led.At(epochID()), r.now, []epoch.Assertion{{Digest: "d-second", Run: run, Next: noon + 2000}}))[0]
				e := r.entry(t, "a")
				if a.Status != epoch.Known || e.HolderRun != c.open || e.Token < run.Token {
					t.Errorf("%s; held by %q, token %d", a.Status, e.HolderRun, e.Token)
				}
				if run.Prev != 0 && e.Cursor != run.Next {
					t.Errorf("cursor %d, want %d", e.Cursor, run.Next)
				}
			})
		})
	}
}

// The record of a run is gone, and its node hands it back, or ends it: another epoch begins, in
// which the node reports the run first.
func TestEndOfALostRun(t *testing.T) {
	for name, end := range map[string]func(ctx context.Context, l *ledger.Ledger, run ledger.Run) (ledger.Status, error){
		"handed back": func(ctx context.Context, l *ledger.Ledger, run ledger.Run) (ledger.Status, error) {
			got, err := settle.Unclaim(ctx, l, []settle.Return{{Job: "a", Run: run.ID, Token: run.Token}})
			return first(got), err
		},
		"settled": func(ctx context.Context, l *ledger.Ledger, run ledger.Run) (ledger.Status, error) {
			got, err := settle.Settle(ctx, l, []settle.Report{{Job: "a", Run: run.ID, Token: run.Token, Outcome: jobs.OutcomeSucceeded, Started: noon, Ended: noon}})
			return first(got), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				ctx := t.Context()
				r.create(t, "a")
				r.pass(t, 1500*time.Millisecond)
				run := r.granted(t, tickClaim("a", "r1", 1))
				r.client.Del(ctx, r.led.Keys[0].Runs)
				if got, err := end(ctx, r.led.At(r.epoch()), run); !errors.Is(err, ledger.ErrServer) {
					t.Fatalf("%s, %v", got, err)
				}
				must(r.led.Restore(ctx, ""))
				l := r.led.At(ledger.EpochID(r.identity, must(r.led.Sample(ctx)).Incarnations[0]))
				must(epoch.Reassert(ctx, l, r.now, []epoch.Assertion{of(run)}))
				if got, err := end(ctx, l, run); err != nil || got != settle.Returned && got != settle.Settled {
					t.Errorf("%s, %v", got, err)
				}
				r.sound(t)
			})
		})
	}
}

func first(all []ledger.Status) ledger.Status {
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// The record of a run is gone, and its job waits for it: its node's report brings it back.
func TestRunLost(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		r.pass(t, 1500*time.Millisecond)
		run := r.granted(t, tickClaim("a", "r1", 1))
		r.client.Del(t.Context(), r.led.Keys[0].Runs)
		if a := must(epoch.Reassert(t.Context(), r.led, r.now, []epoch.Assertion{of(run)}))[0]; a.Status != epoch.Restored {
			t.Errorf("%s", a.Status)
		}
		r.sound(t)
	})
}

// The records of all runs are gone. A batch of claims is granted nothing that a lost run holds: not
// the second job, nor the second claim of the first one.
func TestRunsLostUnderOneBatch(t *testing.T) {
	for name, second := range map[string]claim.Claim{"two jobs": tickClaim("b", "b2", 2), "one job": tickClaim("a", "a3", 3)} {
		t.Run(name, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.create(t, "b")
				r.pass(t, 1500*time.Millisecond)
				r.want(t, claim.Granted, tickClaim("a", "a1", 1))
				r.want(t, claim.Granted, tickClaim("b", "b1", 1))
				r.pass(t, 2*time.Second)
				r.client.Del(t.Context(), r.led.Keys[0].Runs)
				for i, a := range must(claim.Send(t.Context(), r.led.At(r.epoch()), node, r.now, []claim.Claim{tickClaim("a", "a2", 2), second})) {
					if a.Verdict == claim.Granted {
						t.Errorf("claim %d is granted", i)
					}
				}
				if here := must(r.led.Sample(t.Context())).Incarnations[0]; here != "" {
					t.Errorf("incarnation %q goes on", here)
				}
			})
		})
	}
}

// A missing definition is requested again, also for a job whose entry names it; a restarted node
// does not take it for stored.
func TestDefinitionsAreAskedFor(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx := t.Context()
		r.create(t, "a")
		chunk := define.Chunks(r.led, map[string]string{"a": "d-second"})[0][0]
		noError(t, define.Announce(ctx, r.led, "", "", []define.Chunk{chunk}))
		if got := must(define.Current(ctx, r.led, chunk, "")); len(got) != 1 {
			t.Errorf("registered by its chunk: %v", got)
		}
		scan := func() map[int][]string { return must(query.NewScanner(r.led).Scan(ctx, r.now, 0)).Lacking }
		if got := scan(); len(got) != 0 {
			t.Errorf("lacking: %v", got)
		}
		r.client.Del(ctx, r.led.Keys[0].Defs)
		if got := scan(); !slices.Equal(got[0], []string{"defs"}) {
			t.Errorf("lacking: %v, want the definitions", got)
		}
		if got := must(define.Current(ctx, r.led, chunk, "")); len(got) != 0 {
			t.Errorf("registered by its chunk without a definition: %v", got)
		}
		d := define.Definition{Job: "a", Digest: "d-second", Cursor: noon + 1000}
		if got := must(define.Define(ctx, r.led, r.now, []define.Definition{d}))[0]; got.Status != "missing" {
			t.Errorf("without its text: %s", got.Status)
		}
		d.Text = []byte("{}")
		if got := must(define.Define(ctx, r.led, r.now, []define.Definition{d}))[0]; got.Status != "same" || r.client.HLen(ctx, r.led.Keys[0].Defs).Val() != 1 {
			t.Errorf("with its text: %s", got.Status)
		}
	})
}

// Records that are written to two keys at once stand in both: a sweep names the key that has lost
// records.
func TestLacking(t *testing.T) {
	for _, lost := range []string{"jobs", "runs", "leases", "due", "defs"} {
		t.Run(lost, func(t *testing.T) {
			onBoth(t, oneConfig, func(t *testing.T, r *rig) {
				r.create(t, "a")
				r.pass(t, 1500*time.Millisecond)
				r.want(t, claim.Granted, tickClaim("a", "r1", 1))
				r.client.Del(t.Context(), r.led.Keys[0].Tag+lost)
				if got := must(query.NewScanner(r.led).Scan(t.Context(), r.now, 0)); !slices.Equal(got.Lacking[0], []string{lost}) || got.Incarnations[0] != rigIncarnation {
					t.Errorf("lacking %v, incarnations %v", got.Lacking, got.Incarnations)
				}
			})
		})
	}
}

// A job whose last tick was claimed, and a follower, have no next tick: nothing is lost.
func TestNoNextTickIsNoLoss(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.create(t, "a")
		must(define.Define(t.Context(), r.led, r.now, []define.Definition{{Job: "follows", Digest: "d-follows", Text: []byte("{}")}}))
		r.pass(t, 1500*time.Millisecond)
		c := tickClaim("a", "r1", 1)
		c.Next = 0
		r.want(t, claim.Granted, c)
		if got := must(query.NewScanner(r.led).Scan(t.Context(), r.now, 0)).Lacking; len(got) != 0 {
			t.Errorf("lacking %v", got)
		}
	})
}
