package lockredis

import (
	"math"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
)

// Left converts a reply of PTTL to the remaining life of a key; 0 when the key does not expire. PTTL rounds down, and is 0 in
// a key's last millisecond, for which Left returns a millisecond.
func Left(ms int64) time.Duration {
	if ms < 0 {
		return 0
	}
	return max(redisconn.Duration(ms, time.Millisecond), time.Millisecond)
}

// Millis converts d to milliseconds for PX, rounded up because Redis refuses 0. It does not overflow.
func Millis(d time.Duration) int64 {
	return int64((min(d, math.MaxInt64-time.Millisecond) + time.Millisecond - 1) / time.Millisecond)
}
