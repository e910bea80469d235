package redisconn_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redisconn"
)

// A number that does not fit is the longest duration, with its sign.
func TestDuration(t *testing.T) {
	for _, tt := range []struct {
		n    int64
		unit time.Duration
		want time.Duration
	}{
		{0, time.Second, 0}, {3, time.Millisecond, 3 * time.Millisecond}, {-3, time.Second, -3 * time.Second},
		{9223372036854, time.Millisecond, 9223372036854 * time.Millisecond}, {9223372036855, time.Millisecond, math.MaxInt64},
		{288230376151712744, time.Millisecond, math.MaxInt64}, {math.MaxInt64, time.Second, math.MaxInt64}, {math.MaxInt64, 1, math.MaxInt64},
		{-288230376151712744, time.Millisecond, math.MinInt64}, {math.MinInt64, time.Microsecond, math.MinInt64},
	} {
		if got := redisconn.Duration(tt.n, tt.unit); got != tt.want {
			t.Errorf("%d times %s: got %d, want %d", tt.n, tt.unit, got, tt.want)
		}
	}
}

// A timeout in a URL that does not fit is refused: it would switch off all deadlines.
func TestTimeoutsThatDoNotFit(t *testing.T) {
	for _, query := range []string{"read_timeout=9223372036854775807", "write_timeout=9223372037", "dial_timeout=2000000h", "read_timeout=25h"} {
		if _, err := redisconn.Parse("redis://h:1/0?" + query); err == nil || !strings.Contains(err.Error(), "_timeout") {
			t.Errorf("%s: %v", query, err)
		}
	}
	for _, query := range []string{"read_timeout=24h", "read_timeout=3", "dial_timeout=-1"} {
		if _, err := redisconn.Parse("redis://h:1/0?" + query); err != nil {
			t.Errorf("%s: %v", query, err)
		}
	}
}
