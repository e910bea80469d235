//go:build unix

package redislock_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

func killEars(tb testing.TB, s scene) {
	lostCall(tb, s, "killed", func(c *redis.Client) {
		if err := c.Do(context.Background(), "client", "kill", "type", "pubsub").Err(); err != nil {
			tb.Fatal(err)
		}
	})
}

// lines counts what a logger writes.
type lines struct {
	mu sync.Mutex
	n  int
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	return len(p), nil
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// forbidChannels takes away the right to the channels, of those who call and of
// those who are called.
func forbidChannels(tb testing.TB, s scene) {
	acl := func(rule string) func(c *redis.Client) {
		return func(c *redis.Client) {
			if err := c.Do(context.Background(), "acl", "setuser", "default", rule).Err(); err != nil {
				tb.Errorf("acl: %v", err)
			}
		}
	}
	defer s.masters(tb, acl("allchannels"))
	var warned lines
	s.logger = slog.New(slog.NewTextHandler(&warned, nil))
	lostCall(tb, s, "forbidden", acl("resetchannels"))
	if n := warned.count(); n != 1 {
		tb.Errorf("%d warnings of one who waits; want one, not one for each try", n)
	}
}

// movedSlot moves the lock's slot while somebody waits for it, and wants the
// lock to be had soon, and calls to arrive again.
func movedSlot(tb testing.TB, s scene, c *redistest.Cluster) {
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	key := lockKeysOf(lockName)[0]
	from, err := c.Master(ctx, key)
	if err != nil {
		tb.Fatal(err)
	}
	to := c.Servers()[slices.IndexFunc(c.Servers(), func(server *redistest.Server) bool { return server != from })]
	first, _, _ := s.locker(tb)
	lease := hold(tb, first, lockName)
	l, _, _ := s.locker(tb)
	next, later := inLine(tb, l, lockName, 1), inLine(tb, l, lockName, 2)
	await(tb, 10*time.Second, "they listen", func() bool { return slices.Max(s.ears(tb)) == 1 })
	if err := c.MoveSlot(ctx, key, to); err != nil {
		tb.Fatal(err)
	}
	begun := time.Now()
	give(tb, lease)
	lease = <-next
	took := time.Since(begun)
	if took > askedAgain+slack {
		tb.Errorf("after its slot has moved the lock was had after %s; want %s at most", took, askedAgain+slack)
	}
	direct := redis.NewClient(redistest.ClientOptions(to.Addr()))
	defer direct.Close()
	heard := await(tb, 10*time.Second, "they listen at the new master", func() bool {
		return len(direct.PubSubShardChannels(ctx, "*").Val()) == 1
	})
	begun = time.Now()
	give(tb, lease)
	lease = <-later
	called := time.Since(begun)
	if called > askedAgain/3 {
		tb.Errorf("a call from the new master took %s", called)
	}
	tb.Logf("had %s after the move, listening %s later, called in %s", took.Round(time.Millisecond), heard.Round(time.Millisecond), called)
	give(tb, lease)
	s.gone(tb)
}

// oneEar waits for many locks and wants one connection for them at each master,
// and none when nobody waits. With apart each lock has a locker of its own.
func oneEar(tb testing.TB, s scene, apart bool) {
	const locks = 30
	holder, _, _ := s.locker(tb)
	waiter, _, _ := s.locker(tb)
	var leases []*locking.Lease
	var got []<-chan *locking.Lease
	for i := range locks {
		if apart {
			waiter, _, _ = s.locker(tb)
		}
		name := fmt.Sprint("lock", i)
		leases = append(leases, hold(tb, holder, name))
		got = append(got, inLine(tb, waiter, name, 1))
	}
	await(tb, 10*time.Second, "they listen", func() bool { return slices.Min(s.ears(tb)) > 0 })
	if per := s.ears(tb); slices.Max(per) > 1 {
		tb.Errorf("%d locks waited for by one process: %v connections at the masters; want one at each", locks, per)
	}
	for i, lease := range leases {
		give(tb, lease)
		give(tb, <-got[i])
	}
	took := await(tb, 15*time.Second, "the connections end when nobody waits", func() bool { return slices.Max(s.ears(tb)) == 0 })
	tb.Logf("the last connection for calls ended %s after the last wait", took.Round(time.Millisecond))
	s.gone(tb)
}
