package page

import (
	"fmt"
	"strings"

	"github.com/escapement/escapement/cmd/peerbench/figures"
)

// drawn returns the contenders of the plots: contenders with ticks and figures.
func drawn(run figures.Run) (all []figures.Summary) {
	for _, s := range run.Summaries() {
		if s.Due > 0 && s.Problem == "" {
			all = append(all, s)
		}
	}
	return all
}

// rows calls f for each contender, and begins a group where the number of jobs changes.
func (c *canvas) rows(all []figures.Summary, said func(figures.Summary) string, f func(s figures.Summary, y float64)) {
	last := 0
	for _, s := range all {
		if s.Jobs != last {
			c.group(jobs(s.Jobs))
			last = s.Jobs
		}
		y, end := c.row(label(s), said(s), strings.HasPrefix(s.Who, "ours"))
		f(s, y)
		end()
	}
}

// Lags is a plot of how late ticks start.
func Lags(run figures.Run) string {
	const title = "How late ticks start"
	all := drawn(run)
	var values []float64
	for _, s := range all {
		if s.Survived {
			values = append(values, s.P50, s.Max)
		}
	}
	scale := newLogScale(values)
	c := newCanvas(title, "Dot: half of the ticks have started. End of the bar: 99 % of them. End of the thin line: the latest one.", "p50 / p99 ms")
	c.rows(all, func(s figures.Summary) string {
		if !s.Survived {
			return notKept
		}
		return short(s.P50) + " / " + short(s.P99)
	}, func(s figures.Summary, y float64) {
		if !s.Survived {
			return
		}
		c.line(scale.at(s.P50), y, scale.at(s.Max), y, "thin")
		c.line(scale.at(s.P50), y, scale.at(s.P99), y, "line")
		c.dot(scale.at(s.P50), y)
	})
	return c.svg(title, scale.axis(), "start minus due, ms (logarithmic)")
}

// CPU is a plot of what 1,000 ticks cost.
func CPU(run figures.Run) string {
	const title = "CPU time for 1,000 ticks"
	all := drawn(run)
	var values []float64
	for _, s := range all {
		if s.Survived {
			values = append(values, s.NodesCPU, s.CPU())
		}
	}
	scale := newLogScale(values)
	c := newCanvas(title, "Dot: all node processes. End of the bar: with Redis.", "with Redis, s")
	c.rows(all, func(s figures.Summary) string {
		if !s.Survived {
			return notKept
		}
		return short(s.CPU())
	}, func(s figures.Summary, y float64) {
		if !s.Survived {
			return
		}
		c.line(scale.at(s.NodesCPU), y, scale.at(s.CPU()), y, "line")
		c.dot(scale.at(s.NodesCPU), y)
	})
	return c.svg(title, scale.axis(), "CPU seconds for 1,000 ticks that ran (logarithmic)")
}

// Ran is a plot of which share of the ticks ran once.
func Ran(run figures.Run) string {
	const title = "Did each tick run once?"
	c := newCanvas(title, "Blue: once. Orange: twice or more. Grey: not at all.", "twice / missed")
	at := func(part float64) float64 { return left + (right-left)*part }
	c.rows(drawn(run), func(s figures.Summary) string {
		return share(s.Twice, s.Due) + " / " + share(s.Missed, s.Due)
	}, func(s figures.Summary, y float64) {
		from := 0.0
		for _, part := range []struct {
			n     int
			class string
		}{{s.Once, "once"}, {s.Twice, "twice"}, {s.Missed, "missed"}} {
			to := from + float64(part.n)/float64(s.Due)
			if part.n > 0 {
				c.rect(at(from), y-7, at(to)-at(from), 14, part.class)
			}
			from = to
		}
	})
	var axis []mark
	for percent := 0; percent <= 100; percent += 25 {
		axis = append(axis, mark{at(float64(percent) / 100), fmt.Sprint(percent)})
	}
	return c.svg(title, axis, "ticks that were due, %")
}
