//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// TestNotifications tests waiters on one server.
func TestNotifications(t *testing.T) {
	t.Parallel()
	testNotifications(t, standalone(redistest.Start(t)), map[string]func(t *testing.T, s shape){
		"handed over by notification": handedOver, "a broken connection": brokenConnection, "no right to the channels": forbidChannels,
	})
}

// clusterNotifications tests waiters on a Cluster, with its sharded channels.
func clusterNotifications(t *testing.T, c *redistest.Cluster) {
	testNotifications(t, cluster(c), map[string]func(t *testing.T, s shape){
		"handed over by notification": handedOver, "a broken connection": brokenConnection, "the dead are skipped": deadAreSkipped, "one connection": oneConnection,
		"a slot that moves": func(t *testing.T, s shape) { movedSlot(t, s, c) },
	})
}

func testNotifications(t *testing.T, s shape, tests map[string]func(t *testing.T, s shape)) {
	for name, run := range tests {
		t.Run(name, func(t *testing.T) {
			s.delete(t, "")
			run(t, s)
			await(t, "only the token state is left of the locks", func() bool { return len(s.keys(t)) == 0 })
		})
	}
}

func brokenConnection(t *testing.T, s shape) {
	lostNotification(t, s, redislock.Config{}, func(c *redis.Client) error { return c.Do(t.Context(), "client", "kill", "type", "pubsub").Err() })
}

// keys lists the keys that are not the token state of a lock.
func (s shape) keys(tb testing.TB) (keys []string) {
	tb.Helper()
	s.masters(tb, func(c *redis.Client) {
		for _, key := range c.Keys(context.Background(), "*").Val() {
			if !strings.HasSuffix(key, ":token") {
				keys = append(keys, key)
			}
		}
	})
	return keys
}

var evalCount = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)

// scripts counts the scripts that all masters have run.
func (s shape) scripts(tb testing.TB) (n int) {
	tb.Helper()
	s.masters(tb, func(c *redis.Client) {
		for _, m := range evalCount.FindAllStringSubmatch(c.Info(context.Background(), "commandstats").Val(), -1) {
			calls, _ := strconv.Atoi(m[1]) // digits
			n += calls
		}
	})
	return n
}

// listening counts the connections for calls, at each master.
func (s shape) listening(tb testing.TB) (per []int) {
	tb.Helper()
	s.masters(tb, func(c *redis.Client) {
		per = append(per, strings.Count(c.Do(context.Background(), "client", "list", "type", "pubsub").String(), "id="))
	})
	return per
}

// inLine starts to wait for the lock and returns when the waiter has this place. The lease comes over the channel.
func queued(tb testing.TB, l *locking.Locker, name string, place int) <-chan *locking.Lease {
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
	await(tb, fmt.Sprintf("a waiter has place %d", place), func() bool {
		o, err := l.Owner(tb.Context(), name)
		return err == nil && o.Waiters == place
	})
	return got
}

// handedOver lets several lockers hand a lock round, and wants each hand-over to cost three calls:
// the release, the acquire of the notified waiter, and the new place in line of the last holder.
func handedOver(t *testing.T, s shape) {
	const clients, rounds = 8, 25
	var mu sync.Mutex
	var released time.Time
	var took []time.Duration
	round := func(l *locking.Locker) error {
		lease, err := l.Acquire(t.Context(), lockName, locking.Options{TTL: 30 * time.Second, Wait: time.Minute})
		if err != nil {
			return err
		}
		mu.Lock()
		if !released.IsZero() {
			took = append(took, time.Since(released))
		}
		released = time.Now()
		mu.Unlock()
		return lease.Release(t.Context())
	}
	first := s.locker(t, redislock.Config{})
	lease := hold(t, first, lockName)
	var all sync.WaitGroup
	for range clients {
		l := s.locker(t, redislock.Config{})
		all.Go(func() {
			for range rounds {
				if err := round(l); err != nil {
					t.Errorf("a waiter: %v", err)
					return
				}
			}
		})
	}
	await(t, "all are queued", func() bool {
		o, err := first.Owner(t.Context(), lockName)
		return err == nil && o.Waiters == clients
	})
	before, begun := s.scripts(t), time.Now()
	give(t, lease)
	all.Wait()
	calls, spent := s.scripts(t)-before, time.Since(begun)
	most := 3*len(took) + int(2*spent.Seconds()*float64(clients)) + clients // a waiter also polls, twice a second at most
	slices.Sort(took)
	t.Logf("%d hand-overs: %.2f calls each, p50 %s, in %s", len(took), float64(calls)/float64(len(took)), took[len(took)/2], spent)
	if calls > most {
		t.Errorf("%d hand-overs cost %d calls; want %d at most", len(took), calls, most)
	}
}

// Dead processes in the queue cost QueueTimeout once, and the time until the next waiter polls:
// only a dead waiter was notified. testNotifications checks that a queue of dead waiters expires.
func deadAreSkipped(t *testing.T, s shape) {
	const dead = 3
	first := s.locker(t, redislock.Config{})
	die := func(place int) {
		t.Helper()
		c, _ := s.client(t)
		d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
		_, err := d.Acquire(t.Context(), locking.Request{Name: lockName, Owner: fmt.Sprint("dead", place), TTL: 30 * time.Second, Queue: true})
		var held *locking.HeldError
		if !errors.As(err, &held) || held.Place != place {
			t.Fatalf("queued: %v, %+v; want place %d", err, held, place)
		}
		d.Close()
		_ = c.Close()
	}
	lease := hold(t, first, lockName)
	for i := range dead {
		die(i + 1)
	}
	got := queued(t, s.locker(t, redislock.Config{}), lockName, dead+1)
	give(t, lease)
	if o, err := first.Owner(t.Context(), lockName); err != nil || o.Owner != "dead1" {
		t.Fatalf("after the release %+v, %v has the lock; want a dead one, else this proves nothing", o, err)
	}
	next := <-got
	die(1)
	give(t, next)
}

// lostNotification breaks the way of a notification while a locker waits, and wants the waiter to
// have the lock by its next poll at the latest.
func lostNotification(t *testing.T, s shape, cfg redislock.Config, lose func(c *redis.Client) error) {
	lease := hold(t, s.locker(t, redislock.Config{}), lockName)
	got := queued(t, s.locker(t, cfg), lockName, 1)
	await(t, "it listens", func() bool { return slices.Max(s.listening(t)) == 1 })
	s.masters(t, func(c *redis.Client) {
		if err := lose(c); err != nil {
			t.Fatal(err)
		}
	})
	give(t, lease)
	give(t, <-got)
}

// lines counts a logger's lines.
type lines struct{ n atomic.Int64 }

func (l *lines) Write(p []byte) (int, error) {
	l.n.Add(1)
	return len(p), nil
}

// forbidChannels takes away the permission to publish and to subscribe.
func forbidChannels(t *testing.T, s shape) {
	acl := func(rule string) func(c *redis.Client) error {
		return func(c *redis.Client) error {
			return c.Do(context.Background(), "acl", "setuser", "default", rule).Err()
		}
	}
	var warned lines
	defer s.masters(t, func(c *redis.Client) { _ = acl("allchannels")(c) })
	lostNotification(t, s, redislock.Config{Logger: slog.New(slog.NewTextHandler(&warned, nil))}, func(c *redis.Client) error {
		if err := acl("resetchannels")(c); err != nil {
			return err
		}
		await(t, "three tries to subscribe were refused", func() bool { return refusals(t, c) >= 3 })
		return nil
	})
	if n := warned.n.Load(); n != 1 {
		t.Errorf("%d warnings of one waiter; want one, not one for each try", n)
	}
}

var refusedSubscribes = regexp.MustCompile(`cmdstat_subscribe:.*rejected_calls=(\d+)`)

// refusals counts the subscriptions that a server has refused.
func refusals(tb testing.TB, c *redis.Client) (n int) {
	tb.Helper()
	if m := refusedSubscribes.FindStringSubmatch(c.Info(tb.Context(), "commandstats").Val()); m != nil {
		n, _ = strconv.Atoi(m[1]) // digits
	}
	return n
}

// Waiters for many locks share one connection at each master, which ends after the last waiter.
func oneConnection(t *testing.T, s shape) {
	const locks = 30
	holder, waiter := s.locker(t, redislock.Config{}), s.locker(t, redislock.Config{})
	var leases []*locking.Lease
	var got []<-chan *locking.Lease
	for i := range locks {
		name := fmt.Sprint("lock", i)
		leases = append(leases, hold(t, holder, name))
		got = append(got, queued(t, waiter, name, 1))
	}
	await(t, "they listen", func() bool { return slices.Min(s.listening(t)) > 0 })
	if per := s.listening(t); slices.Max(per) > 1 {
		t.Errorf("%d locks waited for by one process: %v connections at the masters; want one at each", locks, per)
	}
	for i, lease := range leases {
		give(t, lease)
		give(t, <-got[i])
	}
	await(t, "the connections end after the last waiter", func() bool { return slices.Max(s.listening(t)) == 0 })
}

// movedSlot moves the lock's slot while a locker waits, and wants the waiter to have the lock soon,
// and notifications to arrive again.
func movedSlot(t *testing.T, s shape, c *redistest.Cluster) {
	ctx := bound(t)
	lease, l := hold(t, s.locker(t, redislock.Config{}), lockName), s.locker(t, redislock.Config{})
	next, later := queued(t, l, lockName, 1), queued(t, l, lockName, 2)
	await(t, "they listen", func() bool { return slices.Max(s.listening(t)) == 1 })
	to := another(ctx, t, c, lockName)
	if err := c.MoveSlot(ctx, lockKeys(lockName)[0], to); err != nil {
		t.Fatal(err)
	}
	give(t, lease)
	lease = <-next
	direct := to.Client(t)
	await(t, "they listen at the new master", func() bool {
		return len(direct.PubSubShardChannels(ctx, "*").Val()) == 1
	})
	give(t, lease)
	give(t, <-later)
}
