//go:build unix

package pglock_test

import (
	"testing"

	"github.com/escapement/escapement/locking/locktest"
)

func TestConformance(t *testing.T) {
	locktest.RunParallel(t, func(tb testing.TB) locktest.Store { return theDatabase(tb).store() })
}

func TestHistories(t *testing.T) {
	locktest.Histories(t, locktest.HistoryConfig{Seed: 1, Count: 20}, func(tb testing.TB) locktest.Store { return theDatabase(tb).store() })
}

func BenchmarkLock(b *testing.B) {
	locktest.Benchmark(b, func(tb testing.TB) locktest.Store { return theDatabase(tb).store() })
}
