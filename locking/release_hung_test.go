package locking

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// The times that docs/locks.md names for a store that hangs. A closed locker has no background: a call takes no longer for
// it. A Release during ReleaseAll waits for that one, and does not repeat its calls.
func TestHungStore(t *testing.T) {
	ctx := context.Background()
	for name, tt := range map[string]struct {
		closed        bool // before the store hangs
		calls, pauses int
		f             func(l *Locker, lease *Lease) (begun time.Time, err error)
	}{
		"owner":   {false, 1, 0, func(l *Locker, _ *Lease) (time.Time, error) { _, err := l.Owner(ctx, "a"); return time.Time{}, err }},
		"release": {false, 3, 2, func(_ *Locker, lease *Lease) (time.Time, error) { return time.Time{}, lease.Release(ctx) }},
		"acquire": {false, 2, 1, func(l *Locker, _ *Lease) (time.Time, error) {
			_, err := l.Acquire(ctx, "b", Options{})
			return time.Time{}, err
		}},
		"close": {false, 2, 0, func(l *Locker, _ *Lease) (time.Time, error) {
			_, err := l.Acquire(ctx, "b", Options{})
			synctest.Wait() // the possible grant is being released
			begun := time.Now()
			l.Close()
			return begun, err
		}},
		"release of a closed one": {true, 3, 2, func(_ *Locker, lease *Lease) (time.Time, error) { return time.Time{}, lease.Release(ctx) }},
		"acquire of a closed one": {true, 3, 1, func(l *Locker, _ *Lease) (time.Time, error) { // and is released once
			_, err := l.Acquire(ctx, "b", Options{})
			return time.Time{}, err
		}},
		"release during ReleaseAll": {false, 3, 2, func(l *Locker, lease *Lease) (time.Time, error) {
			go func() { _ = l.ReleaseAll(ctx) }()
			<-lease.Context().Done()
			return time.Time{}, lease.Release(ctx)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hung{script: newScript(nil, nil)}
				l := New(h, Config{})
				defer l.Close()
				lease := manyHeld(t, l, 1, Options{Fixed: true})[0]
				defer lease.Close()
				if tt.closed {
					l.Close()
				}
				h.hangs.Store(true)
				start := time.Now()
				begun, err := tt.f(l, lease)
				if begun.IsZero() {
					begun = start
				}
				if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnreachable) {
					t.Error(err)
				}
				from := time.Duration(tt.calls)*time.Second + time.Duration(tt.pauses)*retryPause/2
				if took, to := time.Since(begun), from+time.Duration(tt.pauses)*retryPause; took < from || took > to {
					t.Errorf("it took %s; want %s to %s", took, from, to)
				}
			})
		})
	}
}

// slowNetwork is a store over a network that delivers the first acquire late.
type slowNetwork struct {
	*script
	late time.Duration
	held string        // by whom
	idle time.Duration // how long the lock was held for an owner that had released it
	from time.Time
}

func (s *slowNetwork) Acquire(ctx context.Context, r Request) (Grant, error) {
	time.AfterFunc(s.late, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.held, s.from = r.Owner, time.Now()
	})
	<-ctx.Done()
	return Grant{}, ctx.Err()
}

func (s *slowNetwork) Release(ctx context.Context, name, owner string) error {
	_ = s.script.Release(ctx, name, owner) // counts it
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held != owner {
		return ErrLost
	}
	s.held, s.idle = "", time.Since(s.from)
	return nil
}

// An acquire may reach the store after its owner's release, and take the lock for an owner that has
// given up. The lock is then free a third of the ttl after that release, not only after the ttl.
func TestLateAcquireIsReleased(t *testing.T) {
	for name, tt := range map[string]struct {
		ttl, late, idle time.Duration
		left            bool // to lapse
		asked           int
	}{
		"before the release":            {ttl: 15 * time.Second, late: time.Second, idle: time.Second, asked: 1},
		"right after it":                {ttl: 15 * time.Second, late: 2001 * time.Millisecond, idle: 4999 * time.Millisecond, asked: 2},
		"just before it is asked again": {ttl: 15 * time.Second, late: 6999 * time.Millisecond, idle: time.Millisecond, asked: 2},
		"later":                         {ttl: 15 * time.Second, late: 8 * time.Second, left: true, asked: 2},
		"with a long ttl":               {ttl: 24 * time.Hour, late: 3 * time.Second, idle: 19 * time.Second, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slowNetwork{script: newScript(nil, nil), late: tt.late}
				l := New(s, Config{CallTimeout: time.Minute})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				if _, err := l.Acquire(ctx, "a", Options{TTL: tt.ttl}); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
				l.background.running.Wait()
				<-time.After(tt.late + time.Second) // later than the last of both
				s.mu.Lock()
				defer s.mu.Unlock()
				if left := s.held != ""; left != tt.left || s.idle != tt.idle || len(s.released) != tt.asked {
					t.Errorf("left %t, held for nobody for %s, asked %d times; want %t, %s, %d", left, s.idle, len(s.released), tt.left, tt.idle, tt.asked)
				}
			})
		})
	}
}

// Close does not wait for a late acquire.
func TestCloseWaitsForNoLateAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript([]error{ErrUnreachable}, []error{ErrLost})
		l := New(s, Config{})
		if _, err := l.Acquire(t.Context(), "a", Options{}); !errors.Is(err, ErrUnreachable) {
			t.Fatal(err)
		}
		synctest.Wait()
		start := time.Now()
		l.Close()
		if took := time.Since(start); took != 0 || len(s.released) != 2 {
			t.Errorf("it took %s, asked %d times; want at once, and once more", took, len(s.released))
		}
	})
}

// outage is a store that gets no request, or, when cut is false, whose answers to acquire are lost.
type outage struct {
	*script
	cut  atomic.Bool
	held sync.Map // by owner
}

func (s *outage) Acquire(_ context.Context, r Request) (Grant, error) {
	if !s.cut.Load() {
		s.held.Store(r.Owner, true)
	}
	return Grant{}, ErrUnreachable
}

func (s *outage) Release(_ context.Context, _, owner string) error {
	if s.cut.Load() {
		return ErrUnreachable
	}
	if _, was := s.held.LoadAndDelete(owner); !was {
		return ErrLost
	}
	return nil
}

// After an outage many releases wait for late acquires. A grant since then whose answer was lost is released at once.
func TestLateAcquiresLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &outage{script: newScript(nil, nil)}
		l := New(s, Config{Logger: slog.New(slog.DiscardHandler)})
		defer l.Close()
		unanswered := func() {
			if _, err := l.Try(t.Context(), "a", Options{TTL: time.Minute}); !errors.Is(err, ErrUnreachable) {
				t.Error(err)
			}
		}
		s.cut.Store(true)
		var waiters sync.WaitGroup
		for range maxBackground + 100 {
			waiters.Go(unanswered)
		}
		waiters.Wait()
		s.cut.Store(false)
		time.Sleep(3 * time.Second) // each has been answered, and waits for 20 s
		unanswered()
		synctest.Wait()
		s.held.Range(func(owner, _ any) bool {
			t.Errorf("the lock is held by nobody, for owner %s", owner)
			return true
		})
	})
}
