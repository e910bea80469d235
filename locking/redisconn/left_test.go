package redisconn_test

import (
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
)

func TestLeft(t *testing.T) {
	for ms, want := range map[int64]time.Duration{
		-2:   0, // no key
		-1:   0, // no end
		0:    time.Millisecond,
		1:    time.Millisecond,
		1500: 1500 * time.Millisecond,
	} {
		if got := redisconn.Left(ms); got != want {
			t.Errorf("of a key with PTTL %d, %s is left; want %s", ms, got, want)
		}
	}
}
