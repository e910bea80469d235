package locking

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The times of these tests: margin 1 s is the default.
const (
	testTTL  = 15 * time.Second
	deadline = testTTL - time.Second - testTTL/100 // from Grant.Asked
)

func testKeeper(answer func(context.Context, int, []Renewal) ([]RenewAnswer, error)) (*Keeper, *renewals) {
	r := &renewals{answer: answer, start: time.Now()}
	return NewKeeper(r, KeeperConfig{}), r
}

func testGrant(name string, asked time.Time) Grant {
	return Grant{Name: name, Owner: "o-" + name, Token: 7, TTL: testTTL, Asked: asked}
}

// wantLost waits for the lease's context to end and checks when and why.
func wantLost(t *testing.T, l *Lease, start time.Time, after time.Duration) {
	t.Helper()
	select {
	case <-l.Context().Done():
	case <-time.After(2*after + time.Second):
		t.Errorf("not cancelled within %s; want it after %s", 2*after+time.Second, after)
		l.keeper.end(l, lost, "given up")
		return
	}
	if got := time.Since(start); got != after {
		t.Errorf("cancelled after %s; want exactly %s", got, after)
	}
	if err := context.Cause(l.Context()); !errors.Is(err, ErrLeaseLost) {
		t.Errorf("cause %v; want ErrLeaseLost", err)
	}
	if l.Valid() || !l.Lost() {
		t.Errorf("a lost lease says valid %t, lost %t", l.Valid(), l.Lost())
	}
}

func TestKeeperRenewsAllInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, r := testKeeper(healthy)
		var leases []*Lease
		for i := range 100 {
			leases = append(leases, k.Hold(t.Context(), testGrant(string(rune('A'+i)), time.Now())))
			<-time.After(10 * time.Millisecond) // taken at different moments, within a second
		}
		<-time.After(testTTL)
		want := []int{100, 100, 100}
		r.mu.Lock()
		if len(r.sizes) != len(want) || r.sizes[0] != 100 || r.sizes[1] != 100 || r.sizes[2] != 100 {
			t.Errorf("batches of %v within %s; want %v: one every ttl/3", r.sizes, time.Since(r.start), want)
		}
		for i, at := range r.at {
			if due := time.Duration(i+1) * testTTL / 3; at != due {
				t.Errorf("call %d at %s; want %s", i+1, at, due)
			}
		}
		r.mu.Unlock()
		for _, l := range leases {
			if !l.Valid() {
				t.Errorf("%s is not valid though every renewal worked", l.Name())
			}
			l.Close()
		}
	})
}

// Late grants are due for renewal at once. Late grants that arrive together share a call.
func TestKeeperRenewsLateGrantsInOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, r := testKeeper(healthy)
		for i := range 10 {
			l := k.Hold(t.Context(), testGrant(string(rune('A'+i)), time.Now().Add(-testTTL/2)))
			defer l.Close()
			synctest.Wait()
		}
		<-time.After(testTTL / 4)
		if n := r.calls(); n != 1 {
			t.Errorf("%d calls for ten leases that were due at once", n)
		}
	})
}

func TestKeeperCancelsAtTheLocalDeadline(t *testing.T) {
	var over chan struct{} // closed when a test is
	tests := map[string]func(context.Context, int, []Renewal) ([]RenewAnswer, error){
		"errors": down,
		"hangs whatever its context says": func(context.Context, int, []Renewal) ([]RenewAnswer, error) {
			<-over
			return nil, ErrUnreachable
		},
		"hangs until its context ends": func(ctx context.Context, _ int, _ []Renewal) ([]RenewAnswer, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"answers too few": func(context.Context, int, []Renewal) ([]RenewAnswer, error) {
			return []RenewAnswer{}, nil
		},
		"does not know": func(_ context.Context, _ int, batch []Renewal) ([]RenewAnswer, error) {
			return make([]RenewAnswer, len(batch)), nil
		},
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over = make(chan struct{})
				k, r := testKeeper(answer)
				start := time.Now()
				l := k.Hold(t.Context(), testGrant("a", start))
				if got := l.Deadline().Sub(start); got != deadline {
					t.Errorf("deadline after %s; want %s", got, deadline)
				}
				wantLost(t, l, start, deadline)
				close(over)
				synctest.Wait()
				if n := r.calls(); n < 5 && n != 1 || n == 1 && name != "hangs whatever its context says" {
					t.Errorf("%d renewals before the deadline; want one retry after the other", n)
				}
			})
		})
	}
}

func TestKeeperGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := testKeeper(func(_ context.Context, call int, batch []Renewal) ([]RenewAnswer, error) {
			out := all(Renewed, batch)
			for i, r := range batch {
				if r.Name == "a" && call == 2 {
					out[i] = Gone
				}
			}
			return out, nil
		})
		start := time.Now()
		a, b := k.Hold(t.Context(), testGrant("a", start)), k.Hold(t.Context(), testGrant("b", start))
		wantLost(t, a, start, 2*testTTL/3)
		if !b.Valid() {
			t.Errorf("b ended with a: %v", context.Cause(b.Context()))
		}
		b.Close()
	})
}

func TestKeeperLateGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, r := testKeeper(healthy)
		l := k.Hold(t.Context(), testGrant("a", time.Now().Add(-deadline)))
		wantLost(t, l, time.Now(), 0)
		synctest.Wait()
		if r.calls() != 0 { // and a loop that still runs would end the bubble with an error
			t.Errorf("a lease that was lost from the start is renewed: %d calls", r.calls())
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
		synctest.Wait() // the counters are the loop's until then
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
			t.Errorf("valid %t after %d renewals; the lease must be renewed until it is closed", l.Valid(), r.calls())
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
					t.Error("Valid after the suspension does not see the end")
				}
				return
			}
			wantLost(t, l, start, checkEvery) // without a call of Valid: at the keeper's next check
		})
	}
}

// A suspension shorter than the time left brings the deadline nearer, without a call of Valid and without a renewal.
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

// Two clocks reveal a suspension, and are not read at one instant: a timer that fires a little
// early by these clocks is set again.
func TestKeeperTimerByNoisyClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := testKeeper(down)
		var noise atomic.Int64
		k.slept = func() time.Duration { return time.Hour - time.Duration(noise.Load()) }
		l := k.Hold(t.Context(), testGrant("a", time.Now()))
		noise.Store(int64(time.Millisecond))
		<-time.After(deadline + time.Second)
		if !errors.Is(context.Cause(l.base), ErrLeaseLost) { // not through Context, which compares clocks
			t.Errorf("not ended a second after its deadline: %v", context.Cause(l.base))
		}
		l.Close()
	})
}

// A suspension is noticed while a renewal hangs.
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
		wantLost(t, l, start, g.TTL/3+checkEvery)
		synctest.Wait()
	})
}
