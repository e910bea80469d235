package main

import (
	"strings"
	"testing"
	"time"
)

func TestTally(t *testing.T) {
	var starts []start
	for tick := range int64(5) { // one second before those that count, three that do, one after
		for job := range 4 {
			starts = append(starts, start{job, 99 + tick, time.Duration(10*job) * time.Millisecond})
		}
	}
	whole := starts
	without := append(append([]start(nil), whole[:6]...), whole[7:]...)
	for name, tt := range map[string]struct {
		starts             []start
		once, twice, never int
	}{
		"each once":        {whole, 12, 0, 0},
		"nobody ran one":   {without, 11, 0, 1},
		"one ran twice":    {append(whole[:len(whole):len(whole)], start{2, 101, 0}), 11, 1, 0},
		"twice, not once":  {append(without[:len(without):len(without)], start{3, 101, 0}), 10, 1, 1},
		"three times":      {append(whole[:len(whole):len(whole)], start{2, 101, 0}, start{2, 101, 0}), 11, 1, 0},
		"a job of others":  {append(whole[:len(whole):len(whole)], start{4, 101, 0}, start{-1, 101, 0}), 12, 0, 0},
		"nothing ever ran": {nil, 0, 0, 12},
	} {
		f := tally(tt.starts, 4, 100, 103)
		if f.due != 12 || f.once != tt.once || f.twice != tt.twice || f.never != tt.never {
			t.Errorf("%s: of %d due %d once, %d twice, %d never; want %d, %d, %d of 12", name, f.due, f.once, f.twice, f.never, tt.once, tt.twice, tt.never)
		}
	}
	f := tally(whole, 4, 100, 103)
	if f.p50 != 10*time.Millisecond || f.p99 != 30*time.Millisecond || f.most != 30*time.Millisecond {
		t.Errorf("lags of 0, 10, 20 and 30 ms, three of each: p50 %s, p99 %s, most %s", f.p50, f.p99, f.most)
	}
	f.nodes, f.redis, f.scripts = 0.024, 0.012, 6
	var line strings.Builder
	f.line(&line, 4, "3 nodes")
	if want := "4\t3 nodes\t12\t12\t0\t0\t10ms\t30ms\t30ms\t2.000\t1.000\t0.500\n"; line.String() != want {
		t.Errorf("the line is %q, want %q", line.String(), want)
	}
}
