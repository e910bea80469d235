package locking

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func valid(leases []*Lease) (n int) {
	for _, lease := range leases {
		if lease.Valid() {
			n++
		}
	}
	return n
}

// ReleaseAll ends within its context's time though the store hangs, and all leases have ended before.
func TestReleaseAllIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		limit  time.Duration // of the context; 0: it is over already
		most   time.Duration
		reacts bool // each holder releases when its context ends
	}{
		"within the context":    {limit: time.Second, most: time.Second},
		"while holders release": {limit: 100 * time.Millisecond, most: 100 * time.Millisecond, reacts: true},
		"after the context":     {limit: 0, most: 3*time.Second + 3*retryPause},
		"with a longer context": {limit: time.Hour, most: 10 * (3*time.Second + 3*retryPause)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hung{script: newScript(nil, nil)}
				l := New(h, Config{})
				defer l.Close()
				leases := manyHeld(t, l, 10*releasesAtOnce, Options{TTL: time.Hour})
				h.hangs.Store(true)
				var holders sync.WaitGroup
				defer holders.Wait()
				for _, lease := range leases {
					if tt.reacts {
						holders.Go(func() {
							<-lease.Context().Done()
							_ = lease.Release(context.Background())
						})
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), tt.limit)
				defer cancel()
				start, done := time.Now(), make(chan error)
				go func() { done <- l.ReleaseAll(ctx) }()
				synctest.Wait()
				if n := valid(leases); n > 0 {
					t.Errorf("%d leases are valid while they are released", n)
				}
				err := <-done
				if took := time.Since(start); took > tt.most {
					t.Errorf("it took %s; want %s at most", took, tt.most)
				}
				var each interface{ Unwrap() []error }
				if !errors.As(err, &each) || len(each.Unwrap()) != len(leases) || slices.ContainsFunc(each.Unwrap(), func(err error) bool { return !errors.Is(err, ErrUnreachable) }) {
					t.Errorf("want an ErrUnreachable for each lease; got %v", err)
				}
			})
		})
	}
}

// A release goes on when its context ends in the middle.
func TestReleaseOutlivesItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hung{script: newScript(nil, nil)}
		lease := manyHeld(t, New(h, Config{}), 1, Options{})[0]
		h.hangs.Store(true)
		time.AfterFunc(500*time.Millisecond, func() { h.hangs.Store(false) })
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := lease.Release(ctx); err != nil || ctx.Err() == nil {
			t.Errorf("got %v, context %v; want a release after the context's end", err, ctx.Err())
		}
	})
}

// goneFor answers "gone" for the leases of a name and "renewed" for the rest.
func goneFor(name string) func(context.Context, int, []Renewal) ([]RenewAnswer, error) {
	return func(_ context.Context, _ int, batch []Renewal) ([]RenewAnswer, error) {
		out := all(Renewed, batch)
		for i, r := range batch {
			if r.Name == name {
				out[i] = Gone
			}
		}
		return out, nil
	}
}

// A lease that was answered "gone" is released by its holder, not in the background: the holder may still be working.
func TestRevokedLeaseIsLeftToItsHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil, nil)
		s.answer = goneFor("a")
		l := New(s, Config{})
		lease := manyHeld(t, l, 1, Options{})[0]
		<-lease.Context().Done()
		<-time.After(time.Minute)
		s.mu.Lock()
		if n := len(s.released); n > 0 {
			t.Errorf("released %d times", n)
		}
		s.mu.Unlock()
		if err := lease.Release(t.Context()); !errors.Is(err, ErrLost) || len(s.released) != 1 {
			t.Errorf("its holder released it %d times: %v", len(s.released), err)
		}
	})
}

// A release without an answer is repeated in the background, once per lease, so that a short outage does not keep the lock for its
// whole ttl.
func TestReleaseGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(nil, []error{ErrUnreachable})
		l := New(s, Config{})
		lease := mustHold(t, l, "a", Options{TTL: time.Hour})
		for range 2 {
			if err := lease.Release(t.Context()); !errors.Is(err, ErrUnreachable) {
				t.Errorf("the store is unreachable: %v; want ErrUnreachable", err)
			}
		}
		s.mu.Lock()
		s.release = nil
		before := len(s.released)
		s.mu.Unlock()
		time.Sleep(30 * time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if n := len(s.released) - before; n != 1 {
			t.Errorf("the store is back, and was asked %d times; want once", n)
		}
	})
}

func TestReleaseAnswers(t *testing.T) {
	tests := map[string]struct {
		release []error
		want    error
		asked   int  // one more in the background
		lost    bool // the lease was lost before the release
		over    bool // ctx is over
	}{
		"released":                        {asked: 1},
		"context over":                    {asked: 1, over: true},
		"lost":                            {release: []error{ErrLost}, want: ErrLost, asked: 1},
		"lost here, released there":       {want: ErrLost, asked: 1, lost: true},
		"unknown, then released":          {release: []error{ErrUnreachable, nil}, asked: 2},
		"unknown, then nobody's":          {release: []error{ErrUnreachable, ErrLost}, asked: 2},
		"unknown, then nobody's, lost":    {release: []error{ErrUnreachable, ErrLost}, want: ErrLost, asked: 2, lost: true},
		"unknown for good":                {release: []error{ErrUnreachable}, want: ErrUnreachable, asked: releaseTries + 1},
		"lost, and unknown for good":      {release: []error{ErrUnreachable}, want: ErrUnreachable, asked: releaseTries + 1, lost: true},
		"cut short by ctx is unreachable": {release: []error{context.Canceled}, want: ErrUnreachable, asked: releaseTries + 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(nil, tt.release)
				if tt.lost {
					s.renewals.answer = down
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				l := New(s, Config{})
				defer l.Close()
				lease, err := l.Acquire(ctx, "a", Options{})
				if err != nil {
					t.Fatal(err)
				}
				if tt.lost {
					<-lease.Context().Done()
				}
				if tt.over {
					cancel()
				}
				if err := lease.Release(ctx); !errors.Is(err, tt.want) || tt.lost && !errors.Is(err, ErrLost) {
					t.Errorf("got %v; want %v, and ErrLost when it was lost", err, tt.want)
				}
				synctest.Wait()
				if len(s.released) != tt.asked {
					t.Errorf("asked %d times; want %d", len(s.released), tt.asked)
				}
				before := len(s.released)
				again := lease.Release(ctx)
				if tt.want == nil && (again != nil || len(s.released) != before) {
					t.Errorf("second release: %v, asked again %t", again, len(s.released) != before)
				}
				if tt.lost && !errors.Is(again, ErrLost) {
					t.Errorf("second release of what was lost: %v; want ErrLost", again)
				}
			})
		})
	}
}

func TestBackgroundReleaseIsBounded(t *testing.T) {
	for _, closed := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := New(newScript([]error{ErrUnreachable}, []error{ErrUnreachable}), Config{})
			if _, err := l.Acquire(t.Context(), "a", Options{}); !errors.Is(err, ErrUnreachable) {
				t.Fatal(err)
			}
			start := time.Now()
			if closed {
				l.Close()
			}
			l.background.running.Wait()
			if got := time.Since(start); got > defaultTTL || closed && got != 0 {
				t.Errorf("closed %t: tried for %s; want at most the ttl, and at once when closed", closed, got)
			}
		})
	}
}

func TestReleaseOfAKeepersLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := testKeeper(healthy)
		l := k.Hold(t.Context(), testGrant("a", time.Now()))
		if err := l.Release(t.Context()); err == nil || l.Valid() {
			t.Errorf("got %v, valid %t; want a closed lease and an error that says where to settle it", err, l.Valid())
		}
	})
}

// contextAware is a store whose calls do not get through once their context is over.
type contextAware struct{ *script }

func (h contextAware) Release(ctx context.Context, _, _ string) error { return ctx.Err() }

// The limit of ReleaseAll does not overflow with a long CallTimeout.
func TestReleaseAllWithLongCallTimeout(t *testing.T) {
	l := New(contextAware{newScript(nil, nil)}, Config{CallTimeout: math.MaxInt64 / 2})
	manyHeld(t, l, 1, Options{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.ReleaseAll(over); err != nil {
		t.Errorf("%v; want it released", err)
	}
}

// An outage leaves few goroutines behind, however long the ttls of the attempted locks.
func TestBackgroundReleasesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(newScript([]error{ErrUnreachable}, []error{ErrUnreachable}), Config{Logger: slog.New(slog.DiscardHandler)})
		before := runtime.NumGoroutine()
		for range 1000 {
			_, _ = l.Try(t.Context(), "a", Options{TTL: 2 * time.Hour})
			time.Sleep(time.Second)
		}
		if n := runtime.NumGoroutine() - before; n > 100 {
			t.Errorf("%d goroutines", n)
		}
		l.Close()
	})
}

// For the race detector: Close during an acquisition that gives up.
func TestCloseBesideGivingUp(t *testing.T) {
	for range 100 {
		l := New(newScript([]error{ErrUnreachable}, []error{ErrUnreachable}), Config{Logger: slog.New(slog.DiscardHandler)})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		closed := make(chan struct{})
		context.AfterFunc(ctx, func() { l.Close(); close(closed) })
		_, _ = l.Acquire(ctx, "a", Options{Wait: time.Second})
		<-closed
		cancel()
	}
}
