package verify

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// points are starts at these seconds after the epoch.
func points(seconds ...int) []Write {
	var out []Write
	for _, s := range seconds {
		out = append(out, Write{At: after(time.Duration(s) * time.Second)})
	}
	return out
}

func windowsOf(bounds ...[2]int) []window {
	var out []window
	for _, b := range bounds {
		out = append(out, window{after(time.Duration(b[0]) * time.Second), after(time.Duration(b[1]) * time.Second)})
	}
	return out
}

// TestMatchByHand has the two cases by which a checker of this kind is judged, and their edges.
func TestMatchByHand(t *testing.T) {
	for _, tt := range []struct {
		name    string
		windows []window
		starts  []Write
		surplus int
	}{
		{"each start has its window", windowsOf([2]int{0, 2}, [2]int{10, 12}), points(1, 11), 0},
		{"a surplus start fails", windowsOf([2]int{0, 2}, [2]int{10, 12}), points(1, 2, 11), 1},
		{"a surplus start is no stand-in for a later tick", windowsOf([2]int{0, 2}, [2]int{10, 12}), points(1, 2), 1},
		{"overlapping windows are matched at their best", windowsOf([2]int{0, 10}, [2]int{1, 3}), points(2, 8), 0},
		{"and whatever their order", windowsOf([2]int{1, 3}, [2]int{0, 10}, [2]int{2, 20}), points(15, 8, 3), 0},
		{"overlapping windows do not stretch", windowsOf([2]int{0, 4}, [2]int{1, 3}), points(2, 5), 1},
		{"both ends belong to it", windowsOf([2]int{0, 2}, [2]int{2, 4}), points(0, 4), 0},
		{"before it is too soon", windowsOf([2]int{1, 2}), points(0), 1},
		{"no window", nil, points(1), 1},
		{"no start", windowsOf([2]int{1, 2}), nil, 0},
	} {
		if got := match(tt.windows, tt.starts); len(got) != tt.surplus {
			t.Errorf("%s: %d left over, want %d", tt.name, len(got), tt.surplus)
		}
	}
}

// TestMatchIsTheBest compares with a search that tries to make room for every start by moving
// others to other windows.
func TestMatchIsTheBest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		second := rapid.IntRange(0, 20)
		var windows []window
		for range rapid.IntRange(0, 12).Draw(t, "windows") {
			from := second.Draw(t, "from")
			windows = append(windows, windowsOf([2]int{from, from + rapid.IntRange(0, 8).Draw(t, "long")})...)
		}
		starts := points(rapid.SliceOfN(second, 0, 12).Draw(t, "starts")...)
		most := augmented(windows, starts)
		if got := len(starts) - len(match(windows, starts)); got != most {
			t.Fatalf("%d of %d starts matched, %d can be: %v %v", got, len(starts), most, windows, starts)
		}
	})
}

// augmented is the size of the greatest matching, by augmenting paths.
func augmented(windows []window, starts []Write) int {
	holder := make([]int, len(windows)) // of each window: its start, counted from 1
	var place func(start int, tried []bool) bool
	place = func(start int, tried []bool) bool {
		for i, w := range windows {
			at := starts[start].At
			if tried[i] || at.Before(w.from) || at.After(w.to) {
				continue
			}
			tried[i] = true
			if holder[i] == 0 || place(holder[i]-1, tried) {
				holder[i] = start + 1
				return true
			}
		}
		return false
	}
	n := 0
	for i := range starts {
		if place(i, make([]bool, len(windows))) {
			n++
		}
	}
	return n
}

// TestBlindSeesThroughIdentity spoils what identity found, as a fault in it would: the blind check
// does not rely on it.
func TestBlindSeesThroughIdentity(t *testing.T) {
	c := healthy(t)
	s := spoiler{t, &c}
	s.again("ten", "ten-4", "again", sec)
	r := &Report{Verdicts: map[Verdict]int{}}
	tr := newTrial(&c, c.Jobs[0], r, linesOf(c, "ten"), nil)
	tr.blind()
	if got := kindsOf(*r); len(got) != 1 || got[0] != KindBlind {
		t.Errorf("a double that identity overlooked: %s", show(*r))
	}

	c = healthy(t)
	spoiler{t, &c}.shift("ten", "ten-4", 4*sec)
	r = &Report{Verdicts: map[Verdict]int{}}
	newTrial(&c, c.Jobs[0], r, linesOf(c, "ten"), nil).blind()
	if got := kindsOf(*r); len(got) != 1 || got[0] != KindBlind {
		t.Errorf("a late start that identity overlooked: %s", show(*r))
	}

	c = healthy(t)
	r = &Report{Verdicts: map[Verdict]int{}}
	tr = newTrial(&c, c.Jobs[0], r, linesOf(c, "ten"), nil)
	tr.due[3].starts = nil
	tr.blind()
	if got := kindsOf(*r); len(got) != 1 || got[0] != KindDisagree {
		t.Errorf("a start that identity overlooked: %s", show(*r))
	}
}

func linesOf(c Case, job string) []Write {
	var out []Write
	for _, w := range c.Writes {
		if w.Job == job {
			out = append(out, w)
		}
	}
	return out
}
