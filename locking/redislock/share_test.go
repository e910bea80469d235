//go:build unix

package redislock_test

import (
	"testing"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// exclusive are the shares that exclude each other as a lock does.
var exclusive = map[string]locking.Share{"a semaphore of one": {Permits: 1}, "writers": {Mode: locking.Write}}

// of is s with the driver of a share as its driver.
func of(share locking.Share, s locktest.Store) locktest.Store {
	connect := s.Connect
	s.Connect = func(tb testing.TB) (locking.Driver, locktest.Network) {
		d, n := connect(tb)
		return d.(*redislock.Driver).Share(share), n
	}
	return s
}

// TestConformanceShares: a semaphore of one permit, and the writers of a read-write lock, are locks.
func TestConformanceShares(t *testing.T) {
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
