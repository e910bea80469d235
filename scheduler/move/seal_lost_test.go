package move

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// TestNoteLost: a failover of the control record's slot has lost the record of the move at the old
// side, and not the gates. The steps from seal on continue the move from every state, and before
// open abort undoes it.
func TestNoteLost(t *testing.T) {
	for steps := 1; steps <= 4; steps++ {
		for _, abort := range []bool{false, true} {
			t.Run(fmt.Sprint(steps, " steps, abort: ", abort), func(t *testing.T) {
				s := newStage(t)
				s.through(s.steps()[:min(steps, 3)]...)
				control := "{" + ns + "}:control"
				s.a.HDel(t.Context(), control, "move", "servers")
				if steps == 3 { // killed when the first gate was open
					id := strings.Split(s.b.HGet(t.Context(), control, "move").Val(), "|")[1]
					s.b.HSet(t.Context(), control, "move", ledger.Move{ID: id, Role: ledger.MoveTo, State: ledger.MoveOpening, Peer: "old:6379", At: time.Now()}.String())
				}
				st := must(s.m.Status(t.Context()))
				if st.ID == "" || st.Next != NextSeal {
					t.Fatalf("%+v", st)
				}
				if abort {
					_, err := s.m.Abort(t.Context())
					if steps > 2 {
						wants(t, "abort", err, "move open")
					} else if err != nil {
						t.Fatal(err)
					} else {
						s.undone("abort")
						return
					}
				}
				st, err := s.steps()[0](t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if steps < 3 {
					s.through(s.m.Copy)
				} else if st.Next != NextOpen {
					t.Errorf("%+v", st)
				}
				s.through(s.m.Open)
				s.done("after all")
			})
		}
	}
}

// TestMoveRightAfterAFailover: the old Redis has lost a grant in a failover, and the node reports
// it again a second later. The seal waits for the node's announcement in the roster.
func TestMoveRightAfterAFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		p := &people{T: t, client: s.a, led: must(ledger.OpenExisting(t.Context(), s.a, ledger.Config{Namespace: ns}))}
		at := must(query.Job(t.Context(), p.led, "plain")).Cursor
		snap := s.ea.Snapshot()
		c := p.tick(claim.Claim{Job: "plain", Digest: "d:plain", Run: "going", TTL: time.Minute, Attempts: 1}, at)
		p.claim(c)
		var lease ledger.Run
		for _, l := range must(export.Running(t.Context(), p.led)) {
			if l.ID == "going" {
				lease = l
			}
		}
		old := must(export.Servers(t.Context(), p.led))
		s.ea.Restore(snap)
		s.ea.SetRunID(strings.Repeat("f", 40))
		next := must(export.Servers(t.Context(), p.led))
		epochs := must(epoch.Identities(t.Context(), p.led, nil))
		roster := "{" + ns + "}:roster"
		s.a.HSet(t.Context(), roster, "n1", `{"v":1,"id":"n1","told":"`+old+`","placed":"`+old+`"}`)
		stop := every(t, func(int) bool {
			got, err := epoch.Reassert(t.Context(), p.led.At(epochs[p.led.Partition("plain")]), p.clock(), []epoch.Assertion{{Digest: "d:plain", Run: lease}})
			if err != nil {
				t.Errorf("%+v, %v", got, err)
			}
			s.a.HSet(t.Context(), roster, "n1", `{"v":1,"id":"n1","told":"`+next+`","placed":"`+next+`"}`)
			return false
		})
		defer stop()
		_, err := s.m.Seal(t.Context(), SealOptions{Drain: -1})
		wants(t, "seal", err, "run going, node alpha")
		p.settle("plain", "going")
		s.through(s.steps()...)
	})
}

// TestSealWaitsForNodes: for a node that is gone a seal waits no longer than nodes would, and not
// at all when all nodes have reported.
func TestSealWaitsForNodes(t *testing.T) {
	for _, c := range []struct {
		placed   string
		min, max time.Duration
	}{{"another", failoverHold, failoverHold + time.Second}, {"this", 0, time.Second}, {"", failoverHold, failoverHold + time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage(t)
			if c.placed == "this" {
				c.placed = must(export.Servers(t.Context(), must(ledger.OpenExisting(t.Context(), s.a, ledger.Config{Namespace: ns}))))
			}
			s.a.HSet(t.Context(), "{"+ns+"}:roster", "n1", `{"v":1,"id":"n1","placed":"`+c.placed+`"}`)
			begin := time.Now()
			s.through(s.steps()[0])
			if took := time.Since(begin); took < c.min || took > c.max {
				t.Errorf("placed at %q: sealed after %s", c.placed, took)
			}
		})
	}
}

// TestRestartedSinceSealed: the old Redis is another server since the seal. copy and open are
// refused, and seal and copy continue the move; not once the opening has begun.
func TestRestartedSinceSealed(t *testing.T) {
	s := newStage(t)
	s.through(s.steps()[:2]...)
	s.ea.SetRunID(strings.Repeat("f", 40))
	wants(t, "open", second(s.m.Open(t.Context())), "run `move seal` and `move copy` again")
	wants(t, "copy", second(s.m.Copy(t.Context())), "run `move seal` and `move copy` again")
	s.through(s.steps()[:2]...)
	digests := 0 // it fails over, and a run is reported again, while open reads it
	s.m.from.AddHook(spy(nil, func(args []any) {
		if digests >= 0 && fmt.Sprint(args[0]) == "hmget" && strings.HasSuffix(fmt.Sprint(args[1]), ":kept") {
			digests = -1
			s.ea.SetRunID(strings.Repeat("e", 40))
		}
	}))
	wants(t, "open", second(s.m.Open(t.Context())), "run `move seal` and `move copy` again")
	if digests != -1 {
		t.Fatal("open has not read what was kept")
	}
	s.through(s.steps()[:2]...)
	s.through(s.m.Open)
	s.done("restarted")

	s.reset()
	s.through(s.steps()[:2]...)
	gates := 0
	s.m.to.AddHook(spy(func(args []any) bool {
		if script(args, "gate", "open") {
			gates++
		}
		return gates == 2
	}, nil))
	if _, err := s.m.Open(t.Context()); !errors.Is(err, errCut) || gatesOf(t, s.b)["open"] != 1 {
		t.Fatalf("not cut when a gate was open: %v, %v", err, gatesOf(t, s.b))
	}
	gates = 9
	s.ea.SetRunID(strings.Repeat("d", 40))
	s.through(s.m.Open)
	s.done("restarted while it opened")
}
