package move

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/export"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// bubble runs f in virtual time, with one run going.
func bubble(t *testing.T, f func(t *testing.T, s *stage, p *people)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		p := &people{T: t, client: s.a, led: must(ledger.OpenExisting(t.Context(), s.a, ledger.Config{Namespace: ns}))}
		p.now = must2(p.led.Time(t.Context())).UnixMilli()
		at := must(query.Job(t.Context(), p.led, "plain")).Cursor
		p.claim(p.tick(claim.Claim{Job: "plain", Digest: "d:plain", Run: "going", TTL: 10 * time.Second, Attempts: 1}, at))
		f(t, s, p)
	})
}

// every calls f once a second until the test ends or f returns that it is enough.
func every(t *testing.T, f func(n int) bool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for n := 1; ; n++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !f(n) {
					return
				}
			}
		}
	}()
	return func() { cancel(); <-done }
}

// TestDrainReaps: without a node that reaps a lapsed lease, the seal does, when the clock has run
// for its ttl.
func TestDrainReaps(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage, p *people) {
		begin := time.Now()
		s.through(func(ctx context.Context) (Status, error) { return s.m.Seal(ctx, SealOptions{}) })
		if took := time.Since(begin); took < 10*time.Second || took > 11*time.Second {
			t.Errorf("a lease of 10 s was reaped after %s", took)
		}
		rows, _, err := query.History(t.Context(), p.led, []string{"plain"})
		if err != nil || len(rows["plain"]) != 1 || rows["plain"][0].Outcome != jobs.OutcomeAbandoned {
			t.Errorf("%+v, %v", rows, err)
		}
		s.through(s.steps()...)
	})
}

// TestDrainSparesTheLiving: a renewed lease is never reaped, however late, nor any lease just after
// the clock has leapt.
func TestDrainSparesTheLiving(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage, p *people) {
		stop := every(t, func(n int) bool {
			if n%9 == 0 {
				_, err := settle.Renew(t.Context(), p.led, []locking.Renewal{{Name: "plain", Owner: "going", TTL: 10 * time.Second}})
				if err != nil {
					t.Error(err)
				}
			}
			if n == 25 {
				s.ea.StepClock(20 * time.Second) // its lease, renewed at 18 s, has now lapsed to all appearances
			}
			return n < 26
		})
		defer stop()
		_, err := s.m.Seal(t.Context(), SealOptions{Drain: 32 * time.Second})
		wants(t, "seal", err, "plain (run going, node alpha)")
		if n := must(export.Running(t.Context(), p.led)); len(n) != 1 {
			t.Errorf("%d runs are left", len(n))
		}
	})
}

func TestDrainCancels(t *testing.T) {
	bubble(t, func(t *testing.T, s *stage, p *people) {
		stop := every(t, func(int) bool {
			for _, c := range must(query.Cancels(t.Context(), p.led)) {
				if c.Run == "going" && c.Author == "move" && strings.Contains(c.Reason, "new:6379") {
					p.settle("plain", "going")
					return false
				}
			}
			return true
		})
		defer stop()
		begin := time.Now()
		s.through(func(ctx context.Context) (Status, error) { return s.m.Seal(ctx, SealOptions{CancelRunning: true}) })
		if took := time.Since(begin); took > 2*time.Second {
			t.Errorf("the seal took %s", took)
		}
	})
}
