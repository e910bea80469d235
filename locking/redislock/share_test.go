//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// exclusive are the shares that exclude each other as a lock does.
var exclusive = map[string]locking.Share{"a semaphore of one": {Permits: 1}, "writers": {Mode: locking.Write}}

// lockOnly is the driver of a share, without the other shares.
type lockOnly struct {
	locking.Driver
	locking.Notifier
}

// of is s with the driver of a share as its driver.
func of(share locking.Share, s locktest.Store) locktest.Store {
	connect := s.Connect
	s.Connect = func(tb testing.TB) (locking.Driver, locktest.Network) {
		d, n := connect(tb)
		share := d.(*redislock.Driver).Share(share)
		return lockOnly{share, share.(locking.Notifier)}, n
	}
	return s
}

// TestConformanceShares: a semaphore of one permit, and the writers of a read-write lock, are locks.
func TestConformanceShares(t *testing.T) {
	t.Parallel()
	s := standalone(redistest.Start(t))
	for what, share := range exclusive {
		t.Run(what, func(t *testing.T) {
			locktest.RunParallel(t, func(testing.TB) locktest.Store { return of(share, s.store()) })
		})
		t.Run(what+", embedded", func(t *testing.T) {
			locktest.RunInBubble(t, func(tb testing.TB) locktest.Store { return of(share, inBubble(tb)) })
		})
	}
}

// TestHistoriesShares plays the histories of a lock with the shares that are locks.
func TestHistoriesShares(t *testing.T) {
	for what, share := range exclusive {
		t.Run(what, func(t *testing.T) {
			locktest.Histories(t, locktest.HistoryConfig{Seed: *historySeed, Count: *historyCount, Bubble: true},
				func(tb testing.TB) locktest.Store { return of(share, inBubble(tb)) })
		})
	}
}

// shares are a semaphore and a read-write lock.
var shares = map[string]locking.Share{"permits": {Permits: 2}, "readers and writers": {Mode: locking.Read}}

// TestHistoriesSeveral plays histories with several holders at once.
func TestHistoriesSeveral(t *testing.T) {
	for what, share := range shares {
		t.Run(what, func(t *testing.T) {
			locktest.Histories(t, locktest.HistoryConfig{Seed: *historySeed, Count: *historyCount, Bubble: true, Share: share}, inBubble)
		})
	}
}

// broken is a driver whose shares have a fault.
type broken struct {
	*redislock.Driver
	share func(s locking.Share) locking.Share // the share to acquire instead
	ttl   time.Duration                       // at the store, instead of the requested one
	keeps bool                                // a released permit stays held
}

func (b broken) Share(s locking.Share) locking.Driver {
	if b.share != nil {
		s = b.share(s)
	}
	b.Driver = b.Driver.Share(s).(*redislock.Driver)
	return b
}

func (b broken) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	if b.ttl > 0 {
		r.TTL = b.ttl
	}
	return b.Driver.Acquire(ctx, r)
}

func (b broken) Release(ctx context.Context, name, owner string) error {
	if b.keeps {
		return nil
	}
	return b.Driver.Release(ctx, name, owner)
}

// finding is a testing.TB that notes a failure.
type finding struct {
	testing.TB
	found string
}

func (f *finding) Fatalf(format string, args ...any) {
	f.found = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestHistoriesFindFaults: the histories of shares fail with a driver that has a fault.
func TestHistoriesFindFaults(t *testing.T) {
	onePermitMore := func(s locking.Share) locking.Share { return locking.Share{Permits: s.Permits + 1} }
	writersShare := func(locking.Share) locking.Share { return locking.Share{Mode: locking.Read} }
	for what, c := range map[string]struct {
		share  locking.Share
		broken broken
	}{
		"a permit more than there are":  {shares["permits"], broken{share: onePermitMore}},
		"a permit fewer than there are": {locking.Share{Permits: 3}, broken{share: func(locking.Share) locking.Share { return locking.Share{Permits: 2} }}},
		"permits that lapse early":      {shares["permits"], broken{ttl: 50 * time.Millisecond}},
		"permits that lapse late":       {shares["permits"], broken{ttl: time.Minute}},
		"permits that are not released": {shares["permits"], broken{keeps: true}},
		"writers that share":            {shares["readers and writers"], broken{share: writersShare}},
		"a read lock that lapses early": {shares["readers and writers"], broken{ttl: 50 * time.Millisecond}},
	} {
		t.Run(what, func(t *testing.T) {
			for seed := range uint64(50) {
				tb := &finding{}
				synctest.Test(t, func(t *testing.T) {
					s := inBubble(t)
					connect := s.Connect
					s.Connect = func(tb testing.TB) (locking.Driver, locktest.Network) {
						d, n := connect(tb)
						b := c.broken
						b.Driver = d.(*redislock.Driver)
						return b, n
					}
					tb.TB = t
					done := make(chan struct{})
					go func() { // ends with the history, or at its first finding
						defer close(done)
						locktest.ShareHistory(tb, s, c.share, seed)
					}()
					<-done
				})
				if tb.found != "" {
					return
				}
			}
			t.Error("no history fails")
		})
	}
}

// TestWaitersOfAnotherKind: a waiter for a lock keeps the name from a semaphore, though the lock
// has lapsed, and the other way round.
func TestWaitersOfAnotherKind(t *testing.T) {
	inABubble(t, func(t *testing.T, _ *redistest.Embedded, d *redislock.Driver, _ *locking.Locker) {
		kinds := map[string]locking.Driver{"a lock": d, "a semaphore of 2 permits": d.Share(locking.Share{Permits: 2}), "a read-write lock": d.Share(locking.Share{Mode: locking.Write})}
		for held, holder := range kinds {
			for asked, other := range kinds {
				if held == asked {
					continue
				}
				for i := range 2 {
					if _, err := holder.Acquire(t.Context(), request(fmt.Sprint("holder ", i), time.Second)); err != nil && i == 0 {
						t.Fatal(err)
					}
				}
				r := request("waiter", time.Second)
				r.Queue = true
				if _, err := holder.Acquire(t.Context(), r); !errors.Is(err, locking.ErrHeld) {
					t.Fatal(err)
				}
				<-time.After(time.Second + 2*time.Millisecond) // the holders lapse
				_, err := other.Acquire(t.Context(), request("other", time.Second))
				if asked == "a lock" { // a free name is not handed over to waiters of another kind
					if err == nil {
						t.Errorf("a lock is granted before the waiter for %s", held)
					}
				} else {
					wantInput(t, asked+" while somebody waits for "+held, err, map[bool]string{true: "Options.Mode", false: "Options.Permits"}[asked == "a read-write lock"])
					if err != nil && !strings.Contains(err.Error(), held) {
						t.Errorf("%v; want that the name is in use as %s", err, held)
					}
				}
				<-time.After(2 * locking.QueueTimeout) // all waiters have lapsed
			}
		}
	})
}

// TestForeignHash: a hash that is not ours is neither taken nor changed.
func TestForeignHash(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
		key := lockKeys("a")[0]
		c.HSet(t.Context(), key, "field", "of somebody else")
		for _, driver := range []locking.Driver{d, d.Share(locking.Share{Permits: 2})} {
			_, acquire := driver.Acquire(t.Context(), request("o", time.Minute))
			if acquire == nil || driver.Release(t.Context(), "a", "o") == nil || driver.Revoke(t.Context(), "a", 1) == nil {
				t.Errorf("a foreign hash was acquired, released or revoked (%v)", acquire)
			}
			if all := c.HGetAll(t.Context(), key).Val(); len(all) != 1 {
				t.Errorf("it has become %v", all)
			}
		}
	})
}

// TestAfterHoldsForSharesInALine: a hand-over of permits keeps to Options.After.
func TestAfterHoldsForSharesInALine(t *testing.T) {
	inABubble(t, func(t *testing.T, _ *redistest.Embedded, _ *redislock.Driver, l *locking.Locker) {
		o := locking.Options{Mode: locking.Write, Wait: time.Minute}
		first, err := l.Acquire(t.Context(), "a", o)
		if err != nil {
			t.Fatal(err)
		}
		o.After = first.Token() + (10 * time.Minute).Microseconds()
		released := make(chan error, 1)
		time.AfterFunc(5*time.Second, func() { released <- first.Release(context.WithoutCancel(t.Context())) })
		next, err := l.Acquire(t.Context(), "a", o)
		if err = errors.Join(err, <-released); err != nil {
			t.Fatal(err)
		}
		if next.Token() <= o.After {
			t.Errorf("after %d, granted %d", o.After, next.Token())
		}
		give(t, next)
	})
}

// TestRevokedIsNotGrantedAgain: an owner that repeats its request after its grant was revoked, because the answer was lost, is answered ErrLost.
func TestRevokedIsNotGrantedAgain(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
		for what, driver := range map[string]locking.Driver{"lock": d, "permits": d.Share(locking.Share{Permits: 2}), "write": d.Share(locking.Share{Mode: locking.Write})} {
			r := request("owner", time.Minute)
			r.Name = what
			g, err := driver.Acquire(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if err := driver.Revoke(t.Context(), what, g.Token); err != nil {
				t.Fatal(err)
			}
			if g, err := driver.Acquire(t.Context(), r); !errors.Is(err, locking.ErrLost) {
				t.Errorf("%s: a revoked grant is asked for again: %+v, %v; want ErrLost", what, g, err)
			}
		}
	})
}
