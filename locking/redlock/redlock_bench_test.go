package redlock_test

import (
	"testing"

	"github.com/escapement/escapement/locking/locktest"
)

func BenchmarkLock(b *testing.B) {
	c, _ := servers(b, 3)
	locktest.Benchmark(b, func(tb testing.TB) locktest.Store { return c.named(tb).store() })
}
