package locking

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// hung is a store that does not answer, once it hangs.
type hung struct {
	*script
	hangs atomic.Bool
}

func (h *hung) wait(ctx context.Context) error {
	if !h.hangs.Load() {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (h *hung) Acquire(ctx context.Context, r Request) (Grant, error) {
	if err := h.wait(ctx); err != nil {
		return Grant{}, err
	}
	return h.script.Acquire(ctx, r)
}

func (h *hung) Release(ctx context.Context, _, _ string) error { return h.wait(ctx) }

func (h *hung) Owner(ctx context.Context, _ string) (Ownership, error) {
	return Ownership{}, h.wait(ctx)
}

// What a store that hangs costs; docs/locks.md says it.
func TestHungStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hung{script: newScript(nil, nil)}
		l := New(h, Config{})
		lease, err := l.Acquire(t.Context(), "a", Options{Fixed: true})
		if err != nil {
			t.Fatal(err)
		}
		h.hangs.Store(true)
		takes := func(what string, calls, pauses int, f func() error) {
			start := time.Now()
			if err := f(); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ErrUnreachable) {
				t.Errorf("%s: %v", what, err)
			}
			from := time.Duration(calls)*time.Second + time.Duration(pauses)*retryPause/2
			to := from + time.Duration(pauses)*retryPause
			if took := time.Since(start); took < from || took > to {
				t.Errorf("%s took %s; want %s to %s", what, took, from, to)
			}
		}
		takes("owner", 1, 0, func() error { _, err := l.Owner(t.Context(), "a"); return err })
		takes("release", 3, 2, func() error { return lease.Release(t.Context()) })
		takes("acquire", 2, 1, func() error { _, err := l.Acquire(t.Context(), "b", Options{}); return err })
		synctest.Wait() // the grant that may have come about is being given back
		takes("close", 2, 0, func() error { l.Close(); return ErrUnreachable })
	})
}

// A locker that is closed has no background: what a call would leave to it is not added to what the call takes.
func TestHungStoreAfterClose(t *testing.T) {
	for name, tt := range map[string]struct {
		calls, pauses int
		f             func(l *Locker, lease *Lease) error
	}{
		"release": {3, 2, func(_ *Locker, lease *Lease) error { return lease.Release(context.Background()) }},
		"acquire": {3, 1, func(l *Locker, _ *Lease) error { // and is given back once
			_, err := l.Acquire(context.Background(), "b", Options{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &hung{script: newScript(nil, nil)}
				l := New(h, Config{})
				lease := manyHeld(t, l, 1, Options{Fixed: true})[0]
				l.Close()
				h.hangs.Store(true)
				start := time.Now()
				if err := tt.f(l, lease); !errors.Is(err, ErrUnreachable) && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				most := time.Duration(tt.calls)*time.Second + time.Duration(tt.pauses)*3*retryPause/2
				if took := time.Since(start); took > most {
					t.Errorf("it took %s; want %s at most", took, most)
				}
				lease.Close()
			})
		})
	}
}

// A holder that gives its lock back while ReleaseAll does waits for that, and does not ask as often once more.
func TestHungStoreTwoReleases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hung{script: newScript(nil, nil)}
		l := New(h, Config{})
		defer l.Close()
		lease := manyHeld(t, l, 1, Options{Fixed: true})[0]
		h.hangs.Store(true)
		go func() { _ = l.ReleaseAll(context.Background()) }()
		<-lease.Context().Done()
		start := time.Now()
		if err := lease.Release(context.Background()); !errors.Is(err, ErrUnreachable) {
			t.Error(err)
		}
		if took, most := time.Since(start), 3*time.Second+3*retryPause; took > most {
			t.Errorf("it took %s; want %s at most", took, most)
		}
	})
}
