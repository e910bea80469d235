package ledger

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
)

// A partition that has lost everything, its gate or its incarnation is another epoch: whoever knows the one before is granted nothing, and
// no run is ended or renewed, until the node has noticed.
func TestLossIsAnotherEpoch(t *testing.T) {
	lose := map[string]func(ctx context.Context, r *rig) error{
		"nothing":         func(context.Context, *rig) error { return nil },
		"everything":      func(ctx context.Context, r *rig) error { return r.client.FlushAll(ctx).Err() },
		"the gate":        func(ctx context.Context, r *rig) error { return r.client.Del(ctx, r.led.keys[0].gate).Err() },
		"the incarnation": func(ctx context.Context, r *rig) error { return r.client.Del(ctx, r.led.keys[0].incarnation).Err() },
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
					if err := do(t.Context()); what == "nothing" && err != nil || what != "nothing" && !errors.Is(err, ErrServer) && !errors.Is(err, ErrClock) {
						t.Errorf("%s: %v", call, err)
					}
				}
			})
		})
	}
}

// callsOf are calls of a node that knows an epoch, in none of which anything changes for the others.
func callsOf(r *rig, epoch string, run Lease) map[string]func(ctx context.Context) error {
	l := r.led.At(epoch)
	return map[string]func(ctx context.Context) error{
		"claim": func(ctx context.Context) error {
			_, err := l.Claim(ctx, node, r.now, []Claim{tickClaim("a", "r2", 2)})
			return err
		},
		"renew": func(ctx context.Context) error {
			_, err := l.Renew(ctx, []locking.Renewal{{Name: run.Job, Owner: run.Run, Token: run.Token, TTL: ttl}})
			return err
		},
		"settle": func(ctx context.Context) error {
			_, err := l.Settle(ctx, []Report{{Job: "a", Run: "nobody's"}})
			return err
		},
		"reap": func(ctx context.Context) error {
			_, err := l.Reap(ctx, r.now, epoch, []Lease{{Job: "a", Run: "nobody's"}})
			return err
		},
		"reassert": func(ctx context.Context) error {
			_, err := l.Reassert(ctx, r.now, []Assertion{of(run)})
			return err
		},
		"recall": func(ctx context.Context) error {
			_, err := l.Recall(ctx, r.now, []KnownCursor{{Job: "a", Digest: "d-second", Cursor: run.Next}})
			return err
		},
		"save": func(ctx context.Context) error { return l.Save(ctx, epoch, run, "", []byte("x")) },
	}
}

// Opening a namespace makes incarnations where there are none, and restoring it marks those that it makes; neither touches what is there.
func TestIncarnation(t *testing.T) {
	onBoth(t, Config{Partitions: 2}, func(t *testing.T, r *rig) {
		ctx, n := t.Context(), 0
		cfg := Config{Namespace: testNS, NewID: func() string { n++; return "id" }}
		l := must(Open(ctx, r.client, cfg))
		held := func(part int) string { return must(l.Sample(ctx)).Incarnations[part] }
		if a, b := held(0), held(1); a != rigIncarnation || b != rigIncarnation || n > 1 {
			t.Fatalf("opening what is there: %q and %q", a, b)
		}
		r.client.Del(ctx, l.keys[0].gate)
		r.client.Del(ctx, l.keys[1].incarnation)
		if a, b := held(0), held(1); a != "" || b != "" {
			t.Fatalf("lost: %q and %q", a, b)
		}
		must(l.Restore(ctx, ""))
		for part := range 2 {
			at, lost := MadeAfterLoss(held(part))
			if !lost || at.UnixMilli() != r.now {
				t.Errorf("restored: %q", held(part))
			}
		}
		was := held(0)
		for _, id := range []string{"another", ""} {
			if err := l.Supersede(ctx, 0, id); err != nil || held(0) != was {
				t.Errorf("%q superseded: %q, %v", id, held(0), err)
			}
		}
		r.pass(t, time.Second)
		if err := l.Supersede(ctx, 0, was); err != nil || held(0) == was {
			t.Errorf("superseded: %q, %v", held(0), err)
		}
		r.client.FlushAll(ctx)
		r.clock(t, r.now*1000, r.identity)
		must(Open(ctx, r.client, Config{Namespace: testNS, Partitions: 2, NewID: cfg.NewID}))
		if a := held(0); a != "id" {
			t.Errorf("made anew: %q", a)
		}
	})
}

// Where a move has closed the namespace, a gate that is gone is not made again: it would be open.
func TestGateOfAMoveIsNotMadeAnew(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx := t.Context()
		for move, made := range map[string]bool{
			"1|0191f1a2|from|sealed|there|1": false, "1|0191f1a2|to|filling|there|1": false, "1|0191f1a2|to|open|there|1": true, "what?": false,
		} {
			r.client.HSet(ctx, controlKey(testNS), "move", move)
			r.client.Del(ctx, r.led.keys[0].gate)
			_, err := r.led.Restore(ctx, "")
			if err != nil {
				t.Errorf("%s: %v", move, err)
			}
			if got := r.client.Get(ctx, r.led.keys[0].gate); errors.Is(got.Err(), redis.Nil) == made {
				t.Errorf("%s: the gate is %q", move, got.Val())
			}
		}
	})
}
