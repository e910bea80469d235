package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// The older recipes of a lock in Redis, each with a schedule on which it breaks.
// A schedule is played twice, in bubbles of virtual time: with the recipe and
// with this library. What comes of it is a sentence, and both sentences are
// wanted to the letter: so the recipe has to break in just this way, and what
// this library does is shown by a test that a broken lock fails. docs/locks.md
// tells the story.

const (
	recipeName = "stock"
	recipeKey  = "lock:stock" // part of this library's own keys, too
	recipeTTL  = 10 * time.Second
)

// holding is what a machine has of a lock that it took: a *locking.Lease, or
// what a recipe has in its place.
type holding interface {
	Valid() bool // the machine goes on working while it is true
	Release(ctx context.Context) error
}

// taking asks for the lock. The error matches locking.ErrHeld when another
// machine has it.
type taking func(ctx context.Context, wait bool) (holding, error)

// recipe is a way to take locks from a machine.
type recipe func(tb testing.TB, m *machine) taking

// machine is one who wants the lock, with a network of its own.
type machine struct {
	name   string
	lock   string // what it locks with this library
	server *redistest.Embedded
	net    *redistest.Net
	client *redis.Client
	ttl    time.Duration // what it asks for
	skew   time.Duration // of its wall clock; this library has no use for one
	gap    func()        // what happens after the machine looked and before it writes; nil: nothing
	looks  bool          // its recipe has such a gap
	take   taking
}

func (m *machine) now() time.Time { return time.Now().Add(m.skew) }

func (m *machine) between() {
	if m.gap != nil {
		m.gap()
	}
}

func newMachine(tb testing.TB, server *redistest.Embedded, name string, r recipe) *machine {
	tb.Helper()
	m := &machine{name: name, lock: recipeName, server: server, net: new(redistest.Net), ttl: recipeTTL}
	m.client = m.net.Client(server.Options())
	tb.Cleanup(func() { // go-redis dials on, each second, until it sees that the client is closed
		<-time.After(2 * time.Second)
		synctest.Wait()
	})
	tb.Cleanup(func() { _ = m.client.Close() }) // the bubble is over
	tb.Cleanup(m.net.Heal)                      // a dial that hangs would outlive the bubble
	m.take = r(tb, m)
	m.mustRelease(tb, m.must(tb)) // connections and scripts are in place then
	return m
}

func (m *machine) must(tb testing.TB) holding {
	tb.Helper()
	h, err := m.take(tb.Context(), false)
	if err != nil {
		tb.Fatalf("%s takes the lock: %v", m.name, err)
	}
	return h
}

func (m *machine) mustRelease(tb testing.TB, h holding) {
	tb.Helper()
	if err := h.Release(tb.Context()); err != nil {
		tb.Fatalf("%s gives the lock back: %v", m.name, err)
	}
}

// tries takes the lock if it is free, and wants a clear answer.
func (m *machine) tries(tb testing.TB) (holding, bool) {
	tb.Helper()
	h, err := m.take(tb.Context(), false)
	if err != nil && !errors.Is(err, locking.ErrHeld) {
		tb.Fatalf("%s tries to take the lock: %v", m.name, err)
	}
	return h, err == nil
}

// freeAfter says when m can have the lock, which was taken at from: it tries each
// second, after a minute each minute.
func (m *machine) freeAfter(tb testing.TB, from time.Time) string {
	tb.Helper()
	const most = 24 * time.Hour
	step := time.Second
	for time.Since(from) < most {
		if _, ok := m.tries(tb); ok {
			return "free after " + time.Since(from).String()
		}
		if time.Since(from) >= time.Minute {
			step = time.Minute
		}
		<-time.After(step)
	}
	return "still held after " + most.String()
}

// inside names those who would go on working now.
func inside(holdings map[string]holding) string {
	var names []string
	for _, name := range []string{"a", "b", "c"} {
		if h := holdings[name]; h != nil && h.Valid() {
			names = append(names, name)
		}
	}
	return "inside: " + strings.Join(names, " and ")
}

// three are the machines of most schedules.
func three(tb testing.TB, r recipe) (a, b, c *machine) {
	tb.Helper()
	server := embedded(tb)
	return newMachine(tb, server, "a", r), newMachine(tb, server, "b", r), newMachine(tb, server, "c", r)
}

// way is a recipe and what the schedule must come to with it.
type way struct {
	recipe recipe
	want   string
}

// play plays the schedule with the old recipe and with ours.
func play(t *testing.T, schedule func(tb testing.TB, r recipe) string, old, ours way) {
	t.Helper()
	for name, w := range map[string]way{"the recipe": old, "this library": ours} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := schedule(t, w.recipe)
				if got != w.want {
					t.Errorf("%s; want %s", got, w.want)
				}
				t.Log(got)
			})
		})
	}
}

// lease is this library, with the machine's ttl.
func lease(o locking.Options) recipe {
	return func(tb testing.TB, m *machine) taking {
		locker := redislock.New(m.client, redislock.Config{})
		tb.Cleanup(locker.Close)
		return func(ctx context.Context, wait bool) (holding, error) {
			o := o // of this call
			o.TTL = m.ttl
			if wait {
				o.Wait = time.Minute
			}
			l, err := locker.Acquire(ctx, m.lock, o)
			if err != nil {
				return nil, err
			}
			tb.Cleanup(l.Close)
			return l, nil
		}
	}
}

var (
	kept    = lease(locking.Options{})
	notKept = lease(locking.Options{Fixed: true}) // the recipes below keep nothing alive neither
)
