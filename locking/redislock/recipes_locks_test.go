//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// The older recipes of a lock in Redis, with the letters of docs/locks.md. recipes_broken_test.go
// has the schedules on which they break.

const (
	recipeKey = "lock:stock"
	recipeTTL = 10 * time.Second
)

var errTaken = fmt.Errorf("%s: %w", recipeKey, locking.ErrHeld)

// holding is a machine's hold of a lock: a *locking.Lease, or the recipe's own type.
type holding interface {
	Valid() bool // the machine goes on working while it is true
	Release(ctx context.Context) error
}

// recipe takes the lock for a machine. The error matches locking.ErrHeld when another machine has it.
type recipe func(ctx context.Context, m *machine, wait bool) (holding, error)

// machine contends for the lock, over a network of its own.
type machine struct {
	name   string
	server *redistest.Embedded
	net    *redistest.Net
	client *redis.Client
	locker *locking.Locker // over client
	recipe recipe
	lock   string        // its name with this library
	ttl    time.Duration // the ttl of its requests
	skew   time.Duration // of its wall clock; this library has no use for one
	gap    func()        // runs after recipe c reads and before it writes; nil: nothing
	taken  int
}

func newMachine(t *testing.T, server *redistest.Embedded, name string, r recipe) *machine {
	t.Helper()
	m := &machine{name: name, server: server, net: new(redistest.Net), recipe: r, lock: "stock", ttl: recipeTTL}
	o := server.Options()
	m.client = m.net.Client(o)
	m.locker = redislock.New(m.client, redislock.Config{})
	t.Cleanup(func() { // go-redis dials on, each second, until it sees that the client is closed
		<-time.After(2 * time.Second)
		synctest.Wait()
	})
	t.Cleanup(func() { _ = m.client.Close() })
	t.Cleanup(m.locker.Close)
	t.Cleanup(m.net.Heal)   // a dial that hangs would outlive the bubble
	m.release(t, m.take(t)) // connections and scripts are in place then
	return m
}

func (m *machine) take(t *testing.T) holding {
	t.Helper()
	h, err := m.recipe(t.Context(), m, false)
	if err != nil {
		t.Fatalf("%s takes the lock: %v", m.name, err)
	}
	return h
}

func (m *machine) release(t *testing.T, h holding) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Fatalf("%s gives the lock back: %v", m.name, err)
	}
}

// try takes the lock if it is free; nil: it is not.
func (m *machine) try(t *testing.T) holding {
	t.Helper()
	h, err := m.recipe(t.Context(), m, false)
	if err != nil && !errors.Is(err, locking.ErrHeld) {
		t.Fatalf("%s tries to take the lock: %v", m.name, err)
	}
	return h
}

// lease is this library.
func lease(o locking.Options) recipe {
	return func(ctx context.Context, m *machine, wait bool) (holding, error) {
		o := o // of this call
		o.TTL = m.ttl
		if wait {
			o.Wait = time.Minute
		}
		l, err := m.locker.Acquire(ctx, m.lock, o)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, l.Close)
		return l, nil
	}
}

var (
	kept    = lease(locking.Options{})
	notKept = lease(locking.Options{Fixed: true}) // most recipes renew nothing
)

// believed is the holding of a recipe: its machine goes on working until the requested time is
// over, or the machine gave the lock back.
type believed struct {
	until time.Time // zero: it never doubts
	back  func(ctx context.Context) error
	given bool
}

func (b *believed) Valid() bool {
	return !b.given && (b.until.IsZero() || time.Now().Before(b.until))
}

func (b *believed) Release(ctx context.Context) error {
	b.given = true
	return b.back(ctx)
}

// tries makes a recipe of a way to try once, with a unique value. A waiting machine tries again
// each half second.
func tries(once func(ctx context.Context, m *machine, value string) (*believed, error)) recipe {
	return func(ctx context.Context, m *machine, wait bool) (holding, error) {
		for {
			m.taken++
			b, err := once(ctx, m, fmt.Sprint(m.name, m.taken))
			if err == nil {
				return b, nil
			}
			if !wait || !errors.Is(err, locking.ErrHeld) {
				return nil, err
			}
			<-time.After(500 * time.Millisecond)
		}
	}
}

// set runs a command that sets the key if it is not there.
func (m *machine) set(ctx context.Context, args ...any) error {
	n, err := m.client.Do(ctx, args...).Result()
	if errors.Is(err, redis.Nil) || n == int64(0) {
		return errTaken
	}
	return err
}

func (m *machine) deletes(ctx context.Context) error { return m.client.Del(ctx, recipeKey).Err() }

// setNX is recipe a: SETNX and DEL.
var setNX = tries(func(ctx context.Context, m *machine, value string) (*believed, error) {
	return &believed{back: m.deletes}, m.set(ctx, "SETNX", recipeKey, value)
})

// setNXExpire is recipe b: the expiry comes with a second command.
var setNXExpire = tries(func(ctx context.Context, m *machine, value string) (*believed, error) {
	b := &believed{until: time.Now().Add(m.ttl), back: m.deletes}
	if err := m.set(ctx, "SETNX", recipeKey, value); err != nil {
		return nil, err
	}
	return b, m.client.PExpire(ctx, recipeKey, m.ttl).Err()
})

// getSet is recipe c: the value is the lock's end, by the clock of the machine that wrote it. A
// machine that finds the end passed writes its own with GETSET.
var getSet = tries(func(ctx context.Context, m *machine, _ string) (*believed, error) {
	now := func() time.Time { return time.Now().Add(m.skew) }
	ended := func(ms int64) bool { return ms <= now().UnixMilli() }
	until := now().Add(m.ttl).UnixMilli()
	b := &believed{until: time.Now().Add(m.ttl), back: m.deletes}
	err := m.set(ctx, "SETNX", recipeKey, until)
	if !errors.Is(err, locking.ErrHeld) {
		return b, err
	}
	seen, err := m.client.Get(ctx, recipeKey).Int64()
	if err != nil || !ended(seen) {
		return nil, errors.Join(err, errTaken)
	}
	if m.gap != nil {
		m.gap()
	}
	was, err := m.client.Do(ctx, "GETSET", recipeKey, until).Int64()
	if err != nil || !ended(was) {
		return nil, errors.Join(err, errTaken) // another machine was faster; its value is overwritten
	}
	return b, nil
})

// setPX takes the lock as the better recipes do, and gives it back in some way.
func setPX(back func(ctx context.Context, m *machine, value string) error) recipe {
	return tries(func(ctx context.Context, m *machine, value string) (*believed, error) {
		b := &believed{until: time.Now().Add(m.ttl), back: func(ctx context.Context) error { return back(ctx, m, value) }}
		return b, m.set(ctx, "SET", recipeKey, value, "NX", "PX", m.ttl.Milliseconds())
	})
}

// deletesOwn compares and deletes in one script.
func deletesOwn(ctx context.Context, m *machine, value string) error {
	return freeRaw.Run(ctx, m.client, []string{recipeKey}, value).Err()
}

var (
	// setPXDel is recipe d: SET NX PX and DEL.
	setPXDel = setPX(func(ctx context.Context, m *machine, _ string) error { return m.deletes(ctx) })

	// getThenDel is recipe e: it reads the lock's owner, and then deletes the lock.
	getThenDel = setPX(func(ctx context.Context, m *machine, value string) error {
		if now, err := m.client.Get(ctx, recipeKey).Result(); err != nil || now != value {
			return err
		}
		return m.deletes(ctx)
	})

	// setPXScript is the recipe of f, g, h and j.
	setPXScript = setPX(deletesOwn)
)

// retried is recipe f: the same over a client that repeats commands by itself, as go-redis does by
// default.
func retried(ctx context.Context, m *machine, wait bool) (holding, error) {
	o := m.server.Options()
	o.MaxRetries = 3
	again := *m
	again.client = m.net.Client(o)
	context.AfterFunc(ctx, func() { _ = again.client.Close() })
	return setPXScript(ctx, &again, wait)
}

var renewRaw = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)

// watchdog is recipe g: a goroutine keeps the lock alive. It tries again after an error, ends when
// the lock is another machine's, and reports nothing.
var watchdog = tries(func(ctx context.Context, m *machine, value string) (*believed, error) {
	if err := m.set(ctx, "SET", recipeKey, value, "NX", "PX", m.ttl.Milliseconds()); err != nil {
		return nil, err
	}
	keeping, stop := context.WithCancel(ctx)
	go func() { // ends when stop is called or the lock is another's
		for keeping.Err() == nil {
			select {
			case <-time.After(m.ttl / 3):
			case <-keeping.Done():
			}
			if n, err := renewRaw.Run(keeping, m.client, []string{recipeKey}, value, m.ttl.Milliseconds()).Int(); err == nil && n == 0 {
				return
			}
		}
	}()
	return &believed{back: func(ctx context.Context) error {
		stop()
		return deletesOwn(ctx, m, value)
	}}, nil
})
