package figures

import (
	"testing"
	"time"
)

func TestCount(t *testing.T) {
	var whole []Start
	for tick := range int64(5) { // one second before the measured ticks, three measured, one after
		for job := range 4 {
			whole = append(whole, Start{job, 99 + tick, time.Duration(10*job) * time.Millisecond})
		}
	}
	with := func(starts []Start, more ...Start) []Start { return append(starts[:len(starts):len(starts)], more...) }
	without := with(whole[:6], whole[7:]...)
	for name, tt := range map[string]struct {
		starts                     []Start
		once, twice, missed, early int
	}{
		"each once":        {whole, 12, 0, 0, 0},
		"nobody ran one":   {without, 11, 0, 1, 0},
		"one ran twice":    {with(whole, Start{2, 101, 0}), 11, 1, 0, 0},
		"twice, not once":  {with(without, Start{3, 101, 0}), 10, 1, 1, 0},
		"three times":      {with(whole, Start{2, 101, 0}, Start{2, 101, 0}), 11, 1, 0, 0},
		"early":            {with(without, Start{2, 100, -time.Microsecond}), 12, 0, 0, 1},
		"a job of others":  {with(whole, Start{4, 101, 0}, Start{-1, 101, 0}), 12, 0, 0, 0},
		"nothing ever ran": {nil, 0, 0, 12, 0},
	} {
		got := Count(tt.starts, 4, 100, 103)
		if got.Due != 12 || got.Once != tt.once || got.Twice != tt.twice || got.Missed != tt.missed || got.Early != tt.early {
			t.Errorf("%s: %+v; want %+v", name, got, tt)
		}
	}
}

func TestCountLags(t *testing.T) {
	var starts []Start
	for job := range 200 {
		starts = append(starts, Start{job, 7, time.Duration(job+1) * time.Millisecond})
	}
	starts = append(starts, Start{0, 7, time.Hour}) // a tick that ran twice counts with its first start
	want := Lags{P50: 100, P99: 198, Max: 200}
	if got := Count(starts, 200, 7, 8).Lags; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := Count(starts[:1], 200, 7, 8).Lags; got != (Lags{1, 1, 1}) {
		t.Errorf("of one start: %+v", got)
	}
}
