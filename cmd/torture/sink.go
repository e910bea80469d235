package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/schedtest/judge"
)

// line is one line of the sink.
type line struct {
	no    int // from 1, the order of writing
	job   string
	tick  time.Time
	token int64
	node  string
	run   string
	phase judge.Phase // End only of runs that last
	at    time.Time   // when it was written, by the machine's clock
}

func (l line) String() string {
	return fmt.Sprintf("line %d: %s %s token %d node %s run %s %s %s after the tick",
		l.no, l.job, stamp(l.tick), l.token, l.node, l.run, l.phase, l.at.Sub(l.tick))
}

// lag is how long after its tick a run started.
func (l line) lag() time.Duration { return l.at.Sub(l.tick) }

// readSink reads all lines; any other text is a finding. A missing file counts as empty.
func readSink(path string) ([]line, []judge.Finding, error) {
	f, err := os.Open(path) //nolint:gosec // the path is made by this program
	if os.IsNotExist(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var lines []line
	var bad []judge.Finding
	s := bufio.NewScanner(f)
	for no := 1; s.Scan(); no++ {
		l, err := parseLine(s.Text())
		if err != nil {
			bad = append(bad, judge.NewFinding(judge.KindPhantom, "line "+strconv.Itoa(no), time.Time{}, "%v: %.200q", err, s.Text()))
			continue
		}
		l.no = no
		lines = append(lines, l)
	}
	return lines, bad, s.Err()
}

func parseLine(text string) (line, error) {
	f := strings.Split(text, " ")
	if len(f) != 7 {
		return line{}, fmt.Errorf("%d fields, not 7", len(f))
	}
	tick, err := time.Parse(time.RFC3339Nano, f[1])
	if err != nil {
		return line{}, fmt.Errorf("tick: %w", err)
	}
	token, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return line{}, fmt.Errorf("token: %w", err)
	}
	nanos, err := strconv.ParseInt(f[6], 10, 64)
	if err != nil {
		return line{}, fmt.Errorf("time of writing (GNU date is needed): %w", err)
	}
	phase := judge.Phase(f[5])
	if phase != judge.Start && phase != judge.End {
		return line{}, fmt.Errorf("phase %q", phase)
	}
	return line{job: f[0], tick: tick.UTC(), token: token, node: f[3], run: f[4], phase: phase, at: time.Unix(0, nanos).UTC()}, nil
}

// starts returns the lines of runs' starts.
func starts(lines []line) []line {
	var out []line
	for _, l := range lines {
		if l.phase == judge.Start {
			out = append(out, l)
		}
	}
	return out
}

func stamp(t time.Time) string { return t.UTC().Format("15:04:05.000") }

// quantile is the value below which a share q of the sorted lags lies; 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

// lags are how late runs started, sorted, of the lines that count.
func lags(begun []line, counts func(line) bool) []time.Duration {
	var all []time.Duration
	for _, l := range begun {
		if counts(l) {
			all = append(all, l.lag())
		}
	}
	slices.Sort(all)
	return all
}
