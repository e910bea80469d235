//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

func TestSentinelMasterKilled(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	w := musters(t, lockersOf(t, sentinels(s), nil))
	w.since(time.Now(), 100)
	master := mustMaster(t, s)
	if err := master.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	resumed := w.since(killed, 100)
	t.Logf("had again %s after the kill", resumed.Sub(killed).Round(time.Millisecond))
	w.report("kill -9")
	w.inOrder()
}

// The old master wakes when another one has taken its place, and may answer for
// a moment. What it grants then is refused by the sink.
func TestSentinelMasterPaused(t *testing.T) {
	t.Parallel()
	s := redistest.StartSentinels(t)
	ctx := bound(t)
	w := musters(t, lockersOf(t, sentinels(s), nil))
	w.since(time.Now(), 100)
	frozen := mustMaster(t, s)
	if err := frozen.Pause(); err != nil {
		t.Fatal(err)
	}
	paused := time.Now()
	if _, err := s.Promoted(ctx, frozen); err != nil {
		t.Fatal(err)
	}
	if err := frozen.Resume(); err != nil {
		t.Fatal(err)
	}
	resumed := w.since(paused, 100)
	if err := s.Demoted(ctx, frozen); err != nil {
		t.Fatal(err)
	}
	w.since(time.Now(), 100)
	t.Logf("had again %s after the pause", resumed.Sub(paused).Round(time.Millisecond))
	w.report("SIGSTOP, SIGCONT")
}

// parted loses grants that the master has acknowledged: a holder gets the lock
// when no replica hears of it any more, and holds it while another master gives
// it away. It returns the crew, stopped, and the holder's lease.
func parted(tb testing.TB, meddle func(d locking.Driver, c redis.UniversalClient) locking.Driver) (w *crew, stale *locking.Lease) {
	s := redistest.StartSentinels(tb)
	ctx := bound(tb)
	sleepy := newLocker(tb, sentinels(s), meddle)
	w = musters(tb, lockersOf(tb, sentinels(s), meddle))
	w.since(time.Now(), 50)
	master := mustMaster(tb, s)
	if err := s.Part(ctx); err != nil {
		tb.Fatal(err)
	}
	w.since(time.Now(), 20) // all of them only at the old master
	stale, err := sleepy.Acquire(ctx, lockName, locking.Options{TTL: 20 * time.Second, Wait: 10 * time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(stale.Close)
	w.enter(stale)
	if !w.sink.write(stale) {
		tb.Error("the holder's first write was refused")
	}
	if err := master.Kill(); err != nil {
		tb.Fatal(err)
	}
	killed := time.Now()
	resumed := w.since(killed, 50)
	tb.Logf("had again %s after the kill", resumed.Sub(killed).Round(time.Millisecond))
	return w, stale
}

func TestSentinelGrantsLost(t *testing.T) {
	t.Parallel()
	w, stale := parted(t, nil)
	before := w.sink.refused
	if w.sink.write(stale) || w.sink.refused == before {
		t.Error("a holder whose grant was lost writes after its successor")
	}
	select {
	case <-stale.Context().Done():
	case <-time.After(20 * time.Second):
	}
	if err := context.Cause(stale.Context()); !errors.Is(err, locking.ErrLeaseLost) {
		t.Errorf("the holder whose grant was lost was told %v; want %v", err, locking.ErrLeaseLost)
	}
	// Two holders at once: Redis has forgotten what it acknowledged, see doc.go.
	w.report("grants lost")
	w.inOrder()
}

// granter is a driver without a line that grants in its own way.
type granter struct {
	locking.Driver
	grant func(ctx context.Context, r locking.Request) (locking.Grant, error)
}

func (g granter) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	return g.grant(ctx, r)
}

// TestLostGrantsCatchMutant gives the tokens out as a plain counter does, and
// wants the tests above to see it.
func TestLostGrantsCatchMutant(t *testing.T) {
	t.Parallel()
	counting := func(d locking.Driver, c redis.UniversalClient) locking.Driver {
		return granter{d, func(ctx context.Context, r locking.Request) (locking.Grant, error) {
			g, err := d.Acquire(ctx, r)
			if err == nil {
				g.Token, err = c.Incr(ctx, "counter").Result()
			}
			if err != nil && !errors.Is(err, locking.ErrHeld) {
				err = fmt.Errorf("%w: %w", locking.ErrUnreachable, err)
			}
			return g, err
		}}
	}
	failures := observe(t, func(tb testing.TB) {
		w, _ := parted(tb, counting)
		w.report("a plain counter")
		w.inOrder()
	})
	if len(failures) == 0 {
		t.Error("it passes")
	}
	t.Log(failures)
}
