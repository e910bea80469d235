package redislock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
)

// What Redis does with an acquire that comes after its owner's release: it refuses it when that release gave the lock back,
// and grants it when the owner had nothing to give back. Then nobody has the lock until the ttl is over, or it is released again.
func TestLateAcquireAfterTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := withEmbedded(t)
		d, ctx := redislock.NewDriver(c, redislock.Config{Namespace: "kit"}), t.Context()
		request := func(owner string) locking.Request {
			return locking.Request{Name: "a", Owner: owner, TTL: 10 * time.Second}
		}
		acquire := func(owner string) error {
			_, err := d.Acquire(ctx, request(owner))
			return err
		}
		if err := errors.Join(acquire("had it"), d.Release(ctx, "a", "had it")); err != nil {
			t.Fatal(err)
		}
		if err := acquire("had it"); !errors.Is(err, locking.ErrLost) {
			t.Errorf("a late copy for an owner that gave the lock back: %v", err)
		}
		if err := d.Release(ctx, "a", "late"); !errors.Is(err, locking.ErrLost) {
			t.Errorf("release of what was never held: %v", err)
		}
		if err := acquire("late"); err != nil {
			t.Errorf("an acquire that comes after the release of an owner without the lock: %v; it is known to be granted", err)
		}
		if err := acquire("next"); !errors.Is(err, locking.ErrHeld) {
			t.Errorf("the next one: %v", err)
		}
		if err := errors.Join(d.Release(ctx, "a", "late"), acquire("next"), d.Release(ctx, "a", "next")); err != nil {
			t.Errorf("released once more: %v", err)
		}
		if err := acquire("late"); !errors.Is(err, locking.ErrLost) {
			t.Errorf("a second late copy, after it was given back: %v", err)
		}
	})
}

// slow delivers one acquire late, and answers none.
type slow struct {
	*redislock.Driver
	by   time.Duration
	sent chan struct{} // capacity 1
}

func (d slow) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	select {
	case d.sent <- struct{}{}:
		time.AfterFunc(d.by, func() { _, _ = d.Driver.Acquire(context.WithoutCancel(ctx), r) })
	default:
	}
	<-ctx.Done()
	return locking.Grant{}, ctx.Err()
}

// Whoever waits has the lock a third of the ttl after its owner gave up, and not at the end of it; later, when the process
// that gave up has ended meanwhile.
func TestStragglerHoldsNobodyUpForLong(t *testing.T) {
	const ttl, gaveUpAt = 30 * time.Second, 2 * time.Second
	for _, ended := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			_, c := withEmbedded(t)
			driver := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
			late := locking.New(slow{driver, 3 * time.Second, make(chan struct{}, 1)}, locking.Config{CallTimeout: time.Minute})
			next := locking.New(driver, locking.Config{})
			defer next.Close()
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), gaveUpAt)
			defer cancel()
			if _, err := late.Acquire(ctx, "a", locking.Options{TTL: ttl}); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
			if ended {
				late.Close()
			} else {
				defer late.Close()
			}
			<-time.After(2 * time.Second) // it has arrived
			lease, err := next.Acquire(t.Context(), "a", locking.Options{Wait: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = lease.Release(t.Context()) }()
			from, to := gaveUpAt+ttl/3, gaveUpAt+ttl/3+time.Second
			if ended {
				from, to = 3*time.Second+ttl, 4*time.Second+ttl
			}
			took := time.Since(start)
			if took < from || took > to {
				t.Errorf("ended %t: had after %s; want %s to %s", ended, took, from, to)
			}
			t.Logf("ended %t: had %s after the one before began to ask, at a ttl of %s", ended, took, ttl)
		})
	}
}
