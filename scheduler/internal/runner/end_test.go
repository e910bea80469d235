package runner

import (
	"testing"
	"time"
)

func TestStartOf(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		ended time.Duration // after the start, by Redis' clock
		want  time.Duration
	}{
		"the clock runs on":         {3 * time.Second, 0},
		"the estimate changes":      {2200 * time.Millisecond, 0},
		"the clock is set back":     {-10 * time.Second, -13 * time.Second},
		"the clock is set to later": {time.Hour, time.Hour - 3*time.Second},
	} {
		if got := startOf(noon, noon.Add(c.ended), 3*time.Second).Sub(noon); got != c.want {
			t.Errorf("%s: the run starts %s after it did, want %s", name, got, c.want)
		}
	}
}
