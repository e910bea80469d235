package jobs

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// drawSet draws values of a field, of the kinds that have words of their own.
func drawSet(t *rapid.T, low, high int) (set uint64) {
	a := rapid.IntRange(low, high).Draw(t, "a")
	b := rapid.IntRange(a, high).Draw(t, "b")
	step := rapid.IntRange(1, max(1, (high-low)/2)).Draw(t, "step")
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return 1 << a
	case 1:
		a, b, step = low, high, 1
	case 2:
		a, b = low, high
	case 3:
		step = 1
	case 4: // a few
		for range rapid.IntRange(2, 4).Draw(t, "values") {
			set |= 1 << rapid.IntRange(low, high).Draw(t, "value")
		}
		return set
	}
	for v := a; v <= b; v += step {
		set |= 1 << v
	}
	return set
}

// Schedules that differ by one value of one field have different words, unless their ticks
// are the same all the same.
func TestWordsTellSchedulesApart(t *testing.T) {
	from, before := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2033, 1, 1, 0, 0, 0, 0, time.UTC)
	pairs := 0
	rapid.Check(t, func(t *rapid.T) {
		var sets [6]uint64
		for i, rule := range fieldRules {
			sets[i] = drawSet(t, rule.low, rule.high)
		}
		full := func(i int) bool { return sets[i] == 1<<(fieldRules[i].high+1)-1<<fieldRules[i].low }
		schedule := func() *Schedule {
			return &Schedule{zone: time.UTC, cal: calendar{second: sets[0], minute: sets[1], hour: sets[2], dom: sets[3],
				month: sets[4], dow: sets[5], eitherDay: !full(3) && !full(5)}}
		}
		one := schedule()
		i := rapid.IntRange(0, 5).Draw(t, "field")
		sets[i] ^= 1 << rapid.IntRange(fieldRules[i].low, fieldRules[i].high).Draw(t, "changed")
		if sets[i] == 0 {
			t.Skip("a field without a value")
		}
		other := schedule()
		pairs++
		if one.Words() != other.Words() {
			return
		}
		n, last := one.Count(from, before)
		if m, otherLast := other.Count(from, before); n != m || !last.Equal(otherLast) {
			t.Fatalf("%s\nare the words of two schedules:\n%s\n%s", one.Words(), fmt.Sprintf("%+v", one.cal), fmt.Sprintf("%+v", other.cal))
		}
	})
	if pairs < 50 {
		t.Errorf("only %d pairs", pairs)
	}
}
