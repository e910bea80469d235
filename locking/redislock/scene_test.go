//go:build unix

package redislock_test

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
)

const (
	lockName = "order:42"

	// slack is what a busy machine may add to a bound.
	slack = time.Second

	// askedAgain is when, at the latest, whoever stands in line asks by itself.
	askedAgain = locking.Patience / 2
)

// meddled is a driver with some of its ways changed. A nil function changes nothing.
type meddled struct {
	*redislock.Driver
	listen  func(called <-chan struct{}) <-chan struct{}
	acquire func(again bool)
	release func()

	mu    sync.Mutex
	asked map[string]bool // by owner
}

func (m *meddled) Listen(name, owner string) (<-chan struct{}, func()) {
	called, stop := m.Driver.Listen(name, owner)
	if m.listen != nil {
		called = m.listen(called)
	}
	return called, stop
}

func (m *meddled) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	if m.acquire != nil {
		m.mu.Lock()
		again := m.asked[r.Owner]
		m.asked[r.Owner] = true
		m.mu.Unlock()
		m.acquire(again)
		ctx = context.WithoutCancel(ctx) // it may have taken longer than a call may
	}
	return m.Driver.Acquire(ctx, r)
}

func (m *meddled) Release(ctx context.Context, name, owner string) error {
	if m.release != nil {
		m.release()
	}
	return m.Driver.Release(ctx, name, owner)
}

// rewrite is a hook that sends other texts in place of scripts, by their digests.
type rewrite map[string]string

func (rewrite) DialHook(next redis.DialHook) redis.DialHook { return next }

func (rewrite) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r rewrite) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		argv := cmd.Args()
		if strings.EqualFold(cmd.Name(), "evalsha") {
			if text, known := r[argv[1].(string)]; known {
				argv[0], argv[1] = "eval", text
			}
		}
		return next(ctx, cmd)
	}
}

// lockKeysOf spells the keys of a lock as doc.go does.
func lockKeysOf(name string) []string {
	lock := "{kit:lock:" + name + "}"
	return []string{lock, lock + ":token", lock + ":line", lock + ":waiters"}
}

// scene is a shape, and how the clients in it differ from what ships.
type scene struct {
	shape
	meddle  func(c redis.UniversalClient, m *meddled) // nil: they do not
	rewrite rewrite                                   // nil: nothing
	logger  *slog.Logger
}

// locker returns a locker with a client of its own.
func (s scene) locker(tb testing.TB) (*locking.Locker, *meddled, redis.UniversalClient) {
	c, _ := s.client(tb)
	if s.rewrite != nil {
		c.AddHook(s.rewrite)
	}
	d := &meddled{
		Driver: redislock.NewDriver(c, redislock.Config{Namespace: "kit", Logger: s.logger}),
		asked:  make(map[string]bool),
	}
	if s.meddle != nil {
		s.meddle(c, d)
	}
	l := locking.New(d, locking.Config{})
	tb.Cleanup(l.Close)
	return l, d, c
}

// hold takes the lock called name, for as long as the test wants.
func hold(tb testing.TB, l *locking.Locker, name string) *locking.Lease {
	tb.Helper()
	lease, err := l.Acquire(tb.Context(), name, locking.Options{TTL: 30 * time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(lease.Close)
	return lease
}

// inLine starts to wait for the lock and returns when it stands there, as the
// one with this place. The lease comes over the channel.
func inLine(tb testing.TB, l *locking.Locker, name string, place int) <-chan *locking.Lease {
	tb.Helper()
	got := make(chan *locking.Lease, 1)
	go func() { // ends with the wait
		defer close(got)
		lease, err := l.Acquire(tb.Context(), name, locking.Options{TTL: 30 * time.Second, Wait: time.Minute})
		if err != nil {
			tb.Errorf("waiting for %s: %v", name, err)
			return
		}
		got <- lease
	}()
	await(tb, 10*time.Second, fmt.Sprintf("somebody stands in line at place %d", place), func() bool {
		o, err := l.Owner(tb.Context(), name)
		return err == nil && o.Waiters == place
	})
	return got
}

func give(tb testing.TB, lease *locking.Lease) {
	tb.Helper()
	if lease == nil {
		tb.Fatal("there is no lease")
	}
	if err := lease.Release(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// gone waits until nothing is left of the locks but their token state.
func (s scene) gone(tb testing.TB) {
	tb.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			tb.Logf("left: %v", left)
		}
	}()
	await(tb, locking.Patience+slack, "only the token state is left", func() bool {
		left = s.others(tb)
		return len(left) == 0
	})
}

// scripts counts the scripts that all masters have run.
func (s scene) scripts(tb testing.TB) (n int) {
	tb.Helper()
	s.masters(tb, func(c *redis.Client) {
		info, err := c.Info(context.Background(), "commandstats").Result()
		if err != nil {
			tb.Fatal(err)
		}
		for _, m := range evalCalls.FindAllStringSubmatch(info, -1) {
			calls, _ := strconv.Atoi(m[1]) // digits
			n += calls
		}
	})
	return n
}

// ears counts the connections that listen, at each master.
func (s scene) ears(tb testing.TB) (per []int) {
	tb.Helper()
	s.masters(tb, func(c *redis.Client) {
		list, err := c.Do(context.Background(), "client", "list", "type", "pubsub").Text()
		if err != nil {
			tb.Fatal(err)
		}
		per = append(per, strings.Count(list, "id="))
	})
	return per
}
