package main

import (
	"fmt"
	"io"
	"slices"
	"time"
)

// start is one call of a job's function.
type start struct {
	Job  int
	Tick int64         // seconds since 1970
	Lag  time.Duration // from the tick to the call
}

// figures are what was measured of one number of jobs.
type figures struct {
	due, once, twice, never int
	p50, p99, most          time.Duration
	nodes, redis            float64 // seconds of CPU
	scripts                 int     // calls
}

// tally counts how often the ticks of jobs 0 to jobs-1 were started from one second up to, not including, another.
func tally(starts []start, jobs int, from, to int64) figures {
	f := figures{due: jobs * int(to-from)}
	count := make(map[[2]int64]int, f.due)
	var lags []time.Duration
	for _, s := range starts {
		if s.Tick < from || s.Tick >= to || s.Job < 0 || s.Job >= jobs {
			continue
		}
		count[[2]int64{int64(s.Job), s.Tick}]++
		lags = append(lags, s.Lag)
	}
	for _, n := range count {
		if n == 1 {
			f.once++
		} else {
			f.twice++
		}
	}
	f.never = f.due - len(count)
	if len(lags) > 0 {
		slices.Sort(lags)
		at := func(percent int) time.Duration { return lags[(len(lags)-1)*percent/100] }
		f.p50, f.p99, f.most = at(50), at(99), at(100)
	}
	return f
}

// line writes the figures of some jobs as one line of the table.
func (f figures) line(out io.Writer, jobs int, who string) {
	per := float64(max(1, f.once+f.twice))
	short := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	fmt.Fprintf(out, "%d\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%.3f\t%.3f\t%.3f\n", jobs, who, f.due, f.once, f.twice, f.never,
		short(f.p50), short(f.p99), short(f.most), f.nodes*1000/per, f.redis*1000/per, float64(f.scripts)/per)
}
