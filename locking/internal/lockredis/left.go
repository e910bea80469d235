package lockredis

import (
	"math"
	"time"
)

// Left is the time for which a key is there still, of which PTTL has said ms; 0 when it has no end. PTTL
// leaves out the millisecond that has begun, and says 0 in a key's last one: that is no key without an end.
func Left(ms int64) time.Duration {
	if ms < 0 {
		return 0
	}
	return max(time.Duration(ms)*time.Millisecond, time.Millisecond)
}

// Millis is a time as PX takes it, in milliseconds: rounded up, because Redis refuses a PX of 0, and the longest one stays a time.
func Millis(d time.Duration) int64 {
	return int64((min(d, math.MaxInt64-time.Millisecond) + time.Millisecond - 1) / time.Millisecond)
}
