package locking

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeeperLoopEndsWithTheLastLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, r := testKeeper(healthy)
		running := func() bool {
			synctest.Wait()
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.running
		}
		if running() {
			t.Error("the loop runs before there is a lease")
		}
		for round := range 3 {
			a := k.Hold(t.Context(), testGrant("a", time.Now()))
			b := k.Hold(t.Context(), testGrant("b", time.Now()))
			a.Close()
			a.Close()
			if !running() {
				t.Errorf("round %d: the loop ended though b is held", round)
			}
			b.Close()
			if running() {
				t.Errorf("round %d: the loop runs on without a lease", round)
			}
			if err := context.Cause(b.Context()); !errors.Is(err, ErrReleased) {
				t.Errorf("cause %v; want ErrReleased", err)
			}
		}
		<-time.After(time.Hour)
		if r.calls() != 0 {
			t.Errorf("%d renewals of closed leases", r.calls())
		}
	})
}

func TestKeeperAbortsTheLastCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan struct{})
		k, _ := testKeeper(func(ctx context.Context, _ int, _ []Renewal) ([]RenewAnswer, error) {
			close(asked)
			<-ctx.Done()
			return nil, ctx.Err()
		})
		l := k.Hold(t.Context(), testGrant("a", time.Now()))
		<-asked
		start := time.Now()
		l.Close()
		k.Wait()
		if got := time.Since(start); got != 0 {
			t.Errorf("the loop ended %s after its last lease; want at once", got)
		}
	})
}

// Short leases must not suffer from long ones, nor speed up their retries.
func TestKeeperMixedLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var longCalls, shortCalls int
		k, _ := testKeeper(func(ctx context.Context, _ int, batch []Renewal) ([]RenewAnswer, error) {
			for _, r := range batch {
				if r.Name == "long" {
					longCalls++
				} else {
					shortCalls++
				}
			}
			<-ctx.Done() // a hung network: each call lasts as long as it may
			return nil, ctx.Err()
		})
		start := time.Now()
		// The long one is due 0.1 s before the short one.
		long := k.Hold(t.Context(), Grant{Name: "long", TTL: time.Minute, Asked: start.Add(900*time.Millisecond - 20*time.Second)})
		short := k.Hold(t.Context(), Grant{Name: "short", TTL: 3 * time.Second, Asked: start})
		wantLost(t, short, start, 3*time.Second-time.Second-30*time.Millisecond)
		long.Close()
		k.Wait() // the counters are the loop's until then
		if shortCalls < 2 {
			t.Errorf("the short lease was asked for %d times before its deadline; want a retry", shortCalls)
		}
		if longCalls != 1 {
			t.Errorf("the long lease was asked for %d times within 2 s; want once, its retries are due every 4 s", longCalls)
		}
	})
}

func TestKeeperOutlivesTheParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, r := testKeeper(healthy)
		stop := errors.New("shutting down")
		parent, cancel := context.WithCancelCause(t.Context())
		l := k.Hold(parent, testGrant("a", time.Now()))
		cancel(stop)
		if err := context.Cause(l.Context()); !errors.Is(err, stop) {
			t.Errorf("cause %v; want the parent's", err)
		}
		<-time.After(time.Minute)
		if !l.Valid() || r.calls() == 0 {
			t.Errorf("valid %t after %d renewals; the lease must be kept until it is closed", l.Valid(), r.calls())
		}
		l.Close()
	})
}

// A suspended machine: time.Now and the timers stood still, Slept did not.
func TestKeeperNoticesASuspension(t *testing.T) {
	for _, ask := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			k, _ := testKeeper(healthy)
			var mu sync.Mutex
			asleep := time.Hour // before our time, so it does not count
			k.slept = func() time.Duration { mu.Lock(); defer mu.Unlock(); return asleep }
			start := time.Now()
			l := k.Hold(t.Context(), testGrant("a", start))
			<-time.After(time.Second / 2)
			mu.Lock()
			asleep += deadline - time.Second/2 + time.Nanosecond
			mu.Unlock()
			if ask {
				if l.Context().Err() == nil || l.Valid() {
					t.Error("the first look after the suspension does not see the end")
				}
				return
			}
			wantLost(t, l, start, lookEvery) // nobody asked: at the keeper's next look
		})
	}
}

// A suspension that ends before the lease does brings its end nearer, though nobody asks and no renewal is answered.
func TestKeeperCountsASuspension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := testKeeper(down)
		var asleep atomic.Int64
		k.slept = func() time.Duration { return time.Hour + time.Duration(asleep.Load()) }
		start := time.Now()
		l := k.Hold(t.Context(), testGrant("a", start))
		<-time.After(time.Second / 2)
		asleep.Store(int64(5 * time.Second))
		wantLost(t, l, start, deadline-5*time.Second)
	})
}

// The two clocks that tell of a suspension are not read at one instant: a timer that by them is a little early is set again.
func TestKeeperTimerByNoisyClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := testKeeper(down)
		var noise atomic.Int64
		k.slept = func() time.Duration { return time.Hour - time.Duration(noise.Load()) }
		l := k.Hold(t.Context(), testGrant("a", time.Now()))
		noise.Store(int64(time.Millisecond))
		<-time.After(deadline + time.Second)
		if !errors.Is(context.Cause(l.base), ErrLeaseLost) { // not through Context, which would look itself
			t.Errorf("a second after its deadline nobody has ended it: %v", context.Cause(l.base))
		}
		l.Close()
	})
}

// A renewal that hangs for long keeps nobody from noticing a suspension.
func TestKeeperCountsASuspensionAmidACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeeper(&renewals{start: time.Now(), answer: func(ctx context.Context, _ int, _ []Renewal) ([]RenewAnswer, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}, KeeperConfig{CallTimeout: time.Minute})
		var asleep atomic.Int64
		k.slept = func() time.Duration { return time.Hour + time.Duration(asleep.Load()) }
		start, g := time.Now(), testGrant("a", time.Now())
		g.TTL = 90 * time.Second // so that a call may take 15 s
		l := k.Hold(t.Context(), g)
		at := g.TTL/3 + 10*time.Millisecond // the first renewal is under way
		<-time.After(at)
		asleep.Store(int64(time.Hour))
		wantLost(t, l, start, g.TTL/3+lookEvery)
		k.Wait()
	})
}

// While a renewal hangs the keeper does not look; whoever does sets the timer right.
func TestKeeperCountsASuspensionWhenAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := testKeeper(func(ctx context.Context, _ int, _ []Renewal) ([]RenewAnswer, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		var asleep atomic.Int64
		k.slept = func() time.Duration { return time.Hour + time.Duration(asleep.Load()) }
		start := time.Now()
		l := k.Hold(t.Context(), testGrant("a", start))
		const at = testTTL/3 + 10*time.Millisecond // the first renewal is under way
		<-time.After(at)
		asleep.Store(int64(deadline - at - 100*time.Millisecond))
		if !l.Valid() {
			t.Fatal("there were 100 ms left")
		}
		wantLost(t, l, start, at+100*time.Millisecond)
	})
}

func TestSlept(t *testing.T) {
	a, b := Slept(), Slept()
	if a <= 0 || b-a > time.Second || a-b > time.Second {
		t.Errorf("Slept says %s, then %s; want a positive constant while the machine runs", a, b)
	}
}

func TestKeeperLogs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		k := NewKeeper(&renewals{answer: down}, KeeperConfig{Logger: slog.New(slog.NewTextHandler(&out, nil))})
		l := k.Hold(t.Context(), testGrant("a", time.Now()))
		<-l.Context().Done()
		synctest.Wait()
		for _, want := range []string{"level=WARN", "renewal unanswered", ErrUnreachable.Error(), "level=ERROR", "lease lost", "name=a"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("the log says nothing of %q:\n%s", want, out.String())
			}
		}
	})
}
