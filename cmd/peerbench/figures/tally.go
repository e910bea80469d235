package figures

import (
	"slices"
	"time"
)

// Start is one call of a job's function.
type Start struct {
	Job  int
	Tick int64         // seconds since 1970
	Lag  time.Duration // from the tick to the call, negative when it came early
}

// Count counts how often the ticks of jobs 0 to jobs-1 were started, in the seconds from up to
// before to.
func Count(starts []Start, jobs int, from, to int64) Tally {
	type tick struct {
		job int
		at  int64
	}
	t := Tally{Due: jobs * int(to-from)}
	count := make(map[tick]int, t.Due)
	first := make(map[tick]time.Duration, t.Due)
	for _, s := range starts {
		if s.Tick < from || s.Tick >= to || s.Job < 0 || s.Job >= jobs {
			continue
		}
		at := tick{s.Job, s.Tick}
		if lag, again := first[at]; !again || s.Lag < lag {
			first[at] = s.Lag
		}
		count[at]++
		if s.Lag < 0 {
			t.Early++
		}
	}
	for _, n := range count {
		if n == 1 {
			t.Once++
		} else {
			t.Twice++
		}
	}
	t.Missed = t.Due - len(count)
	lags := make([]time.Duration, 0, len(first))
	for _, lag := range first {
		lags = append(lags, lag)
	}
	slices.Sort(lags)
	t.Lags = Lags{percentile(lags, 50), percentile(lags, 99), percentile(lags, 100)}
	return t
}

// percentile returns the least lag, in ms, that percent of the sorted lags do not exceed; 0 of
// none.
func percentile(sorted []time.Duration, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*percent + 99) / 100
	return float64(sorted[rank-1].Microseconds()) / 1000
}
