package move

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// apart is a due tick, claimed at both sides: it must not be granted at both.
func apart(t *testing.T, p *people, to *redis.Client) {
	t.Helper()
	c := p.tick(claim.Claim{Job: "plain", Digest: "d:plain", Run: "plain-1", TTL: 60e9, Attempts: 1}, p.now-100_000)
	one := must(claim.Send(t.Context(), p.led, by, p.clock(), []claim.Claim{c}))
	there := must(ledger.OpenExisting(t.Context(), to, ledger.Config{Namespace: ns}))
	c.Run = "plain-2"
	two := must(claim.Send(t.Context(), there, by, must2(there.Time(t.Context())).UnixMilli(), []claim.Claim{c}))
	if one[0].Verdict == claim.Granted && two[0].Verdict == claim.Granted {
		t.Error("one tick was granted at both sides")
	}
}

// TestAbortAgainstSealAgain: the new side was emptied. One operator aborts; just before the place
// is burnt another operator seals again, copies, and opens, or not.
func TestAbortAgainstSealAgain(t *testing.T) {
	for name, steps := range map[string]int{"sealed": 1, "copied": 2, "open": 3} {
		t.Run(name, func(t *testing.T) {
			ea, a := redistest.StartEmbedded(t)
			eb, b := redistest.StartEmbedded(t)
			p := populate(t, a, 2)
			other := mover(t, a, b, Config{})
			seal := func(ctx context.Context) (Status, error) { return other.Seal(ctx, SealOptions{Drain: -1}) }
			must(seal(t.Context()))
			must(other.Copy(t.Context()))
			eb.Mini().FlushAll()
			ca, cb := ea.Client(), eb.Client()
			defer ca.Close()
			defer cb.Close()
			done := false
			cb.AddHook(spy(func(args []any) bool {
				if done || !script(args, "reserve", "burnt") {
					return false
				}
				done = true
				for _, do := range []func(context.Context) (Status, error){seal, other.Copy, other.Open}[:steps] {
					must(do(t.Context()))
				}
				return false
			}, nil))
			_, err := mover(t, ca, cb, Config{}).Abort(t.Context())
			if !done {
				t.Fatal("nothing came in between")
			}
			if steps == 3 {
				wants(t, "abort", err, "move open")
			} else if err != nil {
				t.Error(err)
			}
			if here, there := gatesOf(t, a), gatesOf(t, b); here["open"] > 0 && there["burnt"] != 2 || here["open"] > 0 && steps == 3 {
				t.Errorf("gates %v and %v", here, there)
			}
			apart(t, p, b)
		})
	}
}

// TestAbortWhereAnotherLives: the new side was emptied, and nodes there have created a namespace.
func TestAbortWhereAnotherLives(t *testing.T) {
	_, a := redistest.StartEmbedded(t)
	eb, b := redistest.StartEmbedded(t)
	populate(t, a, 2)
	m := mover(t, a, b, Config{})
	must(m.Seal(t.Context(), SealOptions{Drain: -1}))
	eb.Mini().FlushAll()
	populate(t, b, 2)
	wants(t, "abort", second(m.Abort(t.Context())), `a namespace "shop" of its own`)
	if here := gatesOf(t, a); here["sealed"] != 2 {
		t.Errorf("unsealed beside a namespace that is open: %v", here)
	}
	eb.Mini().FlushAll()
	must(m.Abort(t.Context()))
	if here := gatesOf(t, a); here["open"] != 2 {
		t.Errorf("%v", here)
	}
}

// TestLateOpenOfAGate: an opening is killed while its first command, to open a gate, is on its way.
// The command arrives after the next opening has begun: before or after that has ended the openings
// before it.
func TestLateOpenOfAGate(t *testing.T) {
	for adopts := range 2 {
		t.Run(fmt.Sprint("after ", adopts, " gates"), func(t *testing.T) {
			ea, a := redistest.StartEmbedded(t)
			eb, b := redistest.StartEmbedded(t)
			p := populate(t, a, 2)
			before := dump(t, a)
			ca, cb := ea.Client(), eb.Client()
			defer ca.Close()
			defer cb.Close()
			var held []any
			killed, left := false, adopts
			late := func() {
				if err := b.Do(t.Context(), held...).Err(); err != nil {
					t.Fatal("the late command: ", err)
				}
				held = nil
			}
			cb.AddHook(spy(func(args []any) bool {
				if killed && held == nil && left < 0 || !script(args, "gate", "open") || killed {
					return false
				}
				held, killed = append([]any{}, args...), true
				return true
			}, func(args []any) {
				if held != nil && script(args, "copy", "") {
					if left--; left == 0 {
						late()
					}
				}
			}))
			m := mover(t, ca, cb, Config{Partitions: 3})
			must(m.Seal(t.Context(), SealOptions{Drain: -1}))
			must(m.Copy(t.Context()))
			if _, err := m.Open(t.Context()); !errors.Is(err, errCut) || held == nil {
				t.Fatalf("the first opening was not killed: %v", err)
			}
			if adopts == 0 {
				late()
				job := "plain" // a node that waits there is granted a tick
				there := must(ledger.OpenExisting(t.Context(), b, ledger.Config{Namespace: ns}))
				for _, job = range []string{"plain", "d-1", "d-2", "d-3"} {
					if there.Partition(job) == 0 {
						break
					}
				}
				c := p.tick(claim.Claim{Job: job, Digest: "d:" + job, Run: "there", TTL: 60e9, Attempts: 1}, p.now-100_000)
				if got := must(claim.Send(t.Context(), there, by, must2(there.Time(t.Context())).UnixMilli(), []claim.Claim{c})); got[0].Verdict != claim.Granted {
					t.Fatalf("%s: %+v", job, got)
				}
			}
			st, err := m.Open(t.Context())
			if err != nil || st.Next != NextDone || held != nil {
				t.Fatalf("%v, %+v, late: %t", err, st, held == nil)
			}
			if d := differ(content(before), content(dump(t, b))); adopts > 0 && len(d) > 0 {
				t.Errorf("%d differences:\n%s", len(d), strings.Join(d, "\n"))
			}
			if here, there := gatesOf(t, a), gatesOf(t, b); here["sealed"] != 2 || there["open"] != 3 {
				t.Errorf("gates %v and %v", here, there)
			}
		})
	}
}

// TestTwoSealsElsewhere: a seal that lost against a seal for another address has reserved a place.
// The place can be freed, before the other move is complete and after, and the other move goes on.
func TestTwoSealsElsewhere(t *testing.T) {
	for _, later := range []bool{false, true} {
		_, a := redistest.StartEmbedded(t)
		_, b := redistest.StartEmbedded(t)
		_, c := redistest.StartEmbedded(t)
		p := populate(t, a, 2)
		toB := mover(t, a, b, Config{})
		toC := must(New(a, c, Config{Namespace: ns, FromName: "old:6379", ToName: "other:6379"}))
		from, to, err := toC.sides(t.Context())
		p.err(err)
		p.err(toC.reserve(t.Context(), from, to, must(toC.newID(t.Context(), from, to)), "")) // and there it is killed
		must(toB.Seal(t.Context(), SealOptions{Drain: -1}))
		if !later {
			wants(t, "seal to the other", second(toC.Seal(t.Context(), SealOptions{Drain: -1})), "goes to new:6379")
			must(toC.Abort(t.Context()))
		}
		must(toB.Copy(t.Context()))
		must(toB.Open(t.Context()))
		if later {
			must(toC.Abort(t.Context()))
		}
		if there := gatesOf(t, c); there["burnt"] != 2 || len(there) != 1 {
			t.Errorf("gates %v", there)
		}
		if here, there := gatesOf(t, a), gatesOf(t, b); here["sealed"] != 2 || there["open"] != 2 {
			t.Errorf("gates %v and %v", here, there)
		}
		wants(t, "abort once more", second(toC.Abort(t.Context())), "moved to new:6379")
		next := must(New(b, c, Config{Namespace: ns, FromName: "new:6379", ToName: "other:6379"}))
		if plan := must(next.Plan(t.Context())); len(plan.InTheWay) > 0 {
			t.Errorf("a move there: %v", plan.InTheWay)
		}
	}
}
