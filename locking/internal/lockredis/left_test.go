package lockredis_test

import (
	"math"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/internal/lockredis"
)

func TestLeft(t *testing.T) {
	for ms, want := range map[int64]time.Duration{
		-2:   0, // no key
		-1:   0, // no end
		0:    time.Millisecond,
		1:    time.Millisecond,
		1500: 1500 * time.Millisecond,
	} {
		if got := lockredis.Left(ms); got != want {
			t.Errorf("PTTL %d: %s left; want %s", ms, got, want)
		}
	}
}

func TestMillis(t *testing.T) {
	for d, want := range map[time.Duration]int64{
		0: 0, 1: 1, time.Millisecond: 1, time.Millisecond + 1: 2, time.Minute: 60_000,
		math.MaxInt64: math.MaxInt64 / 1_000_000, math.MaxInt64 - time.Millisecond: math.MaxInt64 / 1_000_000,
	} {
		if got := lockredis.Millis(d); got != want {
			t.Errorf("%d ns are %d ms; want %d", d, got, want)
		}
	}
}
