package redsynclock_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
	redsync "github.com/escapement/escapement/locking/redsynclock"
)

// surface has the methods of redsync v4.18's *Mutex, without the methods that redsynclock leaves
// out.
type surface interface {
	Name() string
	Value() string
	Until() time.Time
	TryLock() error
	TryLockContext(ctx context.Context) error
	Lock() error
	LockContext(ctx context.Context) error
	Unlock() (bool, error)
	UnlockContext(ctx context.Context) (bool, error)
	Extend() (bool, error)
	ExtendContext(ctx context.Context) (bool, error)
	Valid() (bool, error)
	ValidContext(ctx context.Context) (bool, error)
}

var _ surface = (*redsync.Mutex)(nil)

// bubble runs a test in virtual time, with an embedded Redis.
func bubble(t *testing.T, test func(t *testing.T, rs *redsync.Redsync, locker *locking.Locker, server *redistest.Embedded)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		server, client := redistest.StartEmbedded(t)
		t.Cleanup(func() { // a pool dials on, each second, until it sees that its client is closed
			_ = client.Close()
			<-time.After(2 * time.Second)
			synctest.Wait()
		})
		locker := redislock.New(client, redislock.Config{})
		t.Cleanup(locker.Close)
		test(t, redsync.New(locker), locker, server)
	})
}

func TestMutex(t *testing.T) {
	bubble(t, func(t *testing.T, rs *redsync.Redsync, _ *locking.Locker, _ *redistest.Embedded) {
		a, b := rs.NewMutex("order:42"), rs.NewMutex("order:42", redsync.WithTries(3), redsync.WithRetryDelay(time.Second))
		if a.Name() != "order:42" || a.Value() != "" || !a.Until().IsZero() || a.Token() != 0 || a.Context().Err() == nil {
			t.Errorf("before Lock: %q, %q, until %s, token %d, context %v", a.Name(), a.Value(), a.Until(), a.Token(), a.Context().Err())
		}
		began := time.Now()
		must(t, a.Lock())
		if valid, err := a.Valid(); !valid || err != nil || a.Value() == "" || a.Token() <= 0 || a.Context().Err() != nil {
			t.Errorf("after Lock: valid %v, %v; value %q, token %d, context %v", valid, err, a.Value(), a.Token(), a.Context().Err())
		}
		if until := a.Until().Sub(began); until != 6920*time.Millisecond { // 8 s - margin 1 s - 80 ms
			t.Errorf("until %s after the call", until)
		}

		var taken *redsync.ErrTaken
		if err := b.TryLock(); !errors.As(err, &taken) || len(taken.Nodes) != 1 || !errors.Is(err, locking.ErrHeld) {
			t.Errorf("TryLock of a held lock: %v", err)
		}
		if err, waited := b.Lock(), time.Since(began); !errors.As(err, &taken) || waited < 2*time.Second || waited > 3*time.Second {
			t.Errorf("Lock of a held lock: %v after %s; want ErrTaken after two delays of a second", err, waited)
		}
		extended := time.Now()
		if ok, err := a.Extend(); !ok || err != nil {
			t.Errorf("Extend: %v, %v", ok, err)
		}
		if until := a.Until().Sub(extended); until != 6920*time.Millisecond {
			t.Errorf("until %s after Extend", until)
		}
		if ok, err := a.Unlock(); !ok || err != nil {
			t.Errorf("Unlock: %v, %v", ok, err)
		}
		if cause := context.Cause(a.Context()); !errors.Is(cause, locking.ErrReleased) {
			t.Errorf("after Unlock the context's cause is %v", cause)
		}
		must(t, b.Lock())
		if b.Token() <= a.Token() || b.Value() == a.Value() {
			t.Errorf("second holder: token %d, value %q after %d, %q", b.Token(), b.Value(), a.Token(), a.Value())
		}
		must(t, second(b.Unlock()))
		must(t, a.Lock()) // a mutex may be locked again
		must(t, second(a.Unlock()))
	})
}

func second(ok bool, err error) error {
	if err == nil && !ok {
		return errors.New("false")
	}
	return err
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Without an unlock the lock ends after its expiry, and the context before.
func TestExpiry(t *testing.T) {
	bubble(t, func(t *testing.T, rs *redsync.Redsync, _ *locking.Locker, _ *redistest.Embedded) {
		a, b := rs.NewMutex("a", redsync.WithExpiry(10*time.Second)), rs.NewMutex("a", redsync.WithTries(100))
		began := time.Now()
		must(t, a.Lock())
		ended := make(chan time.Duration, 1)
		go func() {
			<-a.Context().Done()
			ended <- time.Since(began)
		}()
		must(t, b.Lock())
		free, end := time.Since(began), <-ended
		if end != 8900*time.Millisecond || free < 10*time.Second || free > 11*time.Second {
			t.Errorf("the context ended after %s, and the lock was free after %s", end, free)
		}
		if ok, err := a.Extend(); ok || !errors.Is(err, redsync.ErrExtendFailed) || !errors.Is(err, locking.ErrLost) {
			t.Errorf("Extend: %v, %v", ok, err)
		}
		if ok, err := a.Unlock(); ok || !errors.Is(err, redsync.ErrLockAlreadyExpired) || !errors.Is(err, locking.ErrLost) {
			t.Errorf("Unlock: %v, %v", ok, err)
		}
		if valid, err := a.ValidContext(t.Context()); valid || err != nil {
			t.Errorf("valid: %v, %v", valid, err)
		}
		must(t, second(b.Unlock()))
	})
}

func TestRenewal(t *testing.T) {
	bubble(t, func(t *testing.T, rs *redsync.Redsync, _ *locking.Locker, _ *redistest.Embedded) {
		a := rs.NewMutex("a", redsync.WithRenewal())
		must(t, a.Lock())
		<-time.After(time.Minute)
		if err := rs.NewMutex("a").TryLock(); !errors.Is(err, locking.ErrHeld) {
			t.Errorf("after a minute: %v", err)
		}
		must(t, second(a.Unlock()))
	})
}

// The context of LockContext bounds the call, not the lock.
func TestContexts(t *testing.T) {
	bubble(t, func(t *testing.T, rs *redsync.Redsync, locker *locking.Locker, _ *redistest.Embedded) {
		type key struct{}
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		a := rs.NewMutex("a")
		must(t, a.LockContext(ctx))
		cancel()
		synctest.Wait()
		if a.Context().Err() != nil || a.Context().Value(key{}) != "value" {
			t.Errorf("the lock's context: %v, value %v", a.Context().Err(), a.Context().Value(key{}))
		}

		b := rs.NewMutex("a", redsync.WithTries(1000))
		soon, stop := context.WithTimeout(t.Context(), 2*time.Second)
		defer stop()
		began := time.Now()
		err := b.LockContext(soon)
		if waited := time.Since(began); !errors.Is(err, redsync.ErrFailed) || !errors.Is(err, context.DeadlineExceeded) || waited > 2100*time.Millisecond {
			t.Errorf("waiting: %v after %s; want the context's end", err, waited)
		}
		if err := b.LockContext(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, redsync.ErrFailed) {
			t.Errorf("a context that has ended: %v", err)
		}
		synctest.Wait() // the waiter's place is given up
		if ok, err := a.UnlockContext(ctx); !ok || err != nil {
			t.Errorf("UnlockContext with a context that has ended: %v, %v", ok, err)
		}
		if o, err := locker.Owner(t.Context(), "a"); err != nil || o.Held() {
			t.Errorf("owner: %+v, %v", o, err)
		}
	})
}

// hook runs f after each reply.
type hook struct{ f func() }

func (hook) DialHook(next redis.DialHook) redis.DialHook { return next }

func (hook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h hook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		h.f()
		return err
	}
}

// A context that ends when the store has granted the lock, and before Lock has the answer, leaves no lock behind.
func TestContextEndsWithTheGrant(t *testing.T) {
	_, client := redistest.StartEmbedded(t)
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	m := redsync.New(locker).NewMutex("a")
	must(t, m.Lock()) // the script is loaded
	must(t, second(m.Unlock()))
	ctx, cancel := context.WithCancel(t.Context())
	client.AddHook(hook{cancel})
	if err := m.LockContext(ctx); !errors.Is(err, redsync.ErrFailed) || !errors.Is(err, context.Canceled) {
		t.Errorf("Lock: %v", err)
	}
	if o, err := locker.Owner(t.Context(), "a"); err != nil || o.Held() {
		t.Errorf("owner: %+v, %v", o, err)
	}
}

func TestNotLocked(t *testing.T) {
	bubble(t, func(t *testing.T, rs *redsync.Redsync, _ *locking.Locker, _ *redistest.Embedded) {
		a := rs.NewMutex("a")
		if ok, err := a.Unlock(); ok || !errors.Is(err, redsync.ErrLockAlreadyExpired) {
			t.Errorf("Unlock: %v, %v", ok, err)
		}
		if ok, err := a.Extend(); ok || !errors.Is(err, redsync.ErrExtendFailed) {
			t.Errorf("Extend: %v, %v", ok, err)
		}
		must(t, a.Lock())
		must(t, second(a.Unlock()))
		if ok, err := a.Unlock(); ok || !errors.Is(err, redsync.ErrLockAlreadyExpired) {
			t.Errorf("second Unlock: %v, %v", ok, err)
		}
	})
}

func TestUnreachable(t *testing.T) {
	bubble(t, func(t *testing.T, rs *redsync.Redsync, _ *locking.Locker, server *redistest.Embedded) {
		a := rs.NewMutex("a")
		must(t, a.Lock())
		server.Stop()
		var unreachable *redsync.RedisError
		if ok, err := a.Extend(); ok || !errors.As(err, &unreachable) || !errors.Is(err, locking.ErrUnreachable) {
			t.Errorf("Extend: %v, %v", ok, err)
		}
		if ok, err := a.Unlock(); ok || !errors.As(err, &unreachable) {
			t.Errorf("Unlock: %v, %v", ok, err)
		}
		if err := rs.NewMutex("b").TryLock(); !errors.As(err, &unreachable) {
			t.Errorf("TryLock: %v", err)
		}
	})
}

func TestArguments(t *testing.T) {
	bubble(t, func(t *testing.T, rs *redsync.Redsync, _ *locking.Locker, _ *redistest.Embedded) {
		var input *locking.InputError
		for _, m := range []*redsync.Mutex{rs.NewMutex(""), rs.NewMutex("a", redsync.WithExpiry(time.Second))} {
			if err := m.Lock(); !errors.Is(err, redsync.ErrFailed) || !errors.As(err, &input) {
				t.Errorf("Lock: %v; want ErrFailed with the argument", err)
			}
		}
		for _, o := range []redsync.Option{redsync.WithTries(math.MaxInt), redsync.WithTries(-1), redsync.WithRetryDelay(-1), redsync.WithRetryDelay(math.MaxInt64)} {
			m := rs.NewMutex("a", o)
			must(t, m.Lock())
			must(t, second(m.Unlock()))
		}
	})
}

// Many goroutines share one mutex: one at a time has it.
func TestShared(t *testing.T) {
	_, client := redistest.StartEmbedded(t)
	locker := redislock.New(client, redislock.Config{})
	defer locker.Close()
	m := redsync.New(locker).NewMutex("a", redsync.WithTries(200))
	var all sync.WaitGroup
	inside := make(chan struct{}, 1)
	for range 8 {
		all.Go(func() {
			if err := m.Lock(); err != nil {
				t.Error(err)
				return
			}
			select {
			case inside <- struct{}{}:
			default:
				t.Error("two inside")
			}
			<-inside
			if ok, err := m.Unlock(); !ok || err != nil {
				t.Errorf("unlock: %v, %v", ok, err)
			}
		})
	}
	all.Wait()
}
