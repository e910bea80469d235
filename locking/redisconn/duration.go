package redisconn

import (
	"math"
	"time"
)

// Duration is n units, for a number from outside: beyond the range of time.Duration, the longest
// one with the sign of n.
func Duration(n int64, unit time.Duration) time.Duration {
	//guard:foreign-number P8 a number of a Redis, a file or a request does not become another one
	if n > math.MaxInt64/int64(unit) {
		return math.MaxInt64
	}
	if n < math.MinInt64/int64(unit) {
		return math.MinInt64
	}
	return time.Duration(n) * unit
}
