package lane

import (
	"slices"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// TestGaps: the gaps of a range and the follower's rows have each of the range's ticks once.
func TestGaps(t *testing.T) {
	s, err := cron.ParseFor("a", "@every 1s", "")
	if err != nil {
		t.Fatal(err)
	}
	const day = 86_400
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	at := func(second int64) int64 { return start + second*1000 }
	run := func(second int64) ledger.Row { return ledger.Row{Tick: at(second)} }
	rangeOf := func(from, to int64) ledger.Row { return ledger.Row{Tick: at(from), Until: at(to), Ranged: true} }
	gap := func(from, to int64) ledger.Gap {
		return ledger.Gap{First: at(from), Last: at(to), Next: at(to + 1), Count: to - from + 1}
	}
	for name, c := range map[string]struct {
		rows []ledger.Row
		want []ledger.Gap
	}{
		"no rows":           {nil, []ledger.Gap{gap(1, day)}},
		"runs":              {[]ledger.Row{run(9), run(7), run(8)}, []ledger.Gap{gap(1, 6), gap(10, day)}},
		"a run by hand":     {[]ledger.Row{{Tick: at(7), Request: "x"}}, []ledger.Gap{gap(1, day)}},
		"at both ends":      {[]ledger.Row{rangeOf(-5, 3), rangeOf(day-1, day+7)}, []ledger.Gap{gap(4, day-2)}},
		"one in the other":  {[]ledger.Row{rangeOf(5, 50), rangeOf(6, 7), run(60)}, []ledger.Gap{gap(1, 4), gap(51, 59), gap(61, day)}},
		"all":               {[]ledger.Row{rangeOf(1, day)}, nil},
		"before and behind": {[]ledger.Row{run(0), run(day + 1)}, []ledger.Gap{gap(1, day)}},
	} {
		e := ledger.Event{Tick: at(1), Until: at(day), Count: day}
		if got := gaps(s, c.rows, e); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	newest := newestOf(s, ledger.Event{Tick: at(1), Until: at(3)})
	if !slices.Equal(newest, []int64{at(1), at(2), at(3)}) {
		t.Errorf("the newest of three are %v", newest)
	}
	if newest = newestOf(s, ledger.Event{Tick: at(1), Until: at(day)}); len(newest) != eachMost || newest[0] != at(day-eachMost+1) {
		t.Errorf("the newest of %d are %d from %d on", day, len(newest), newest[0])
	}
}
