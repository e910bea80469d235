//go:build !race

package jobs_test

import (
	"fmt"
	"strings"
	"testing"
)

// Over many names H takes every value of its range, none outside, each about as often.
func TestHashSpreads(t *testing.T) {
	const names = 6000
	for _, c := range []struct {
		field, low, high int
		text             string
	}{
		{0, 0, 59, "H"}, {1, 0, 59, "H"}, {2, 0, 23, "H"}, {3, 1, 28, "H"}, {4, 1, 12, "H"}, {5, 0, 6, "H"},
		{1, 10, 19, "H(10-19)"}, {3, 1, 28, "H(1-28)"}, {5, 1, 5, "H(MON-FRI)"}, {4, 10, 12, "H(oct-dec)"}, {2, 7, 7, "H(7-7)"},
	} {
		seen := map[int]int{}
		for n := range names {
			fields := []string{"0", "0", "0", "*", "*", "*"}
			fields[c.field] = c.text
			s := parseFor(t, fmt.Sprint("job-", n), strings.Join(fields, " "), "")
			var v int
			if _, err := fmt.Sscan(strings.Fields(s.Resolved())[c.field], &v); err != nil {
				t.Fatal(err)
			}
			seen[v]++
		}
		size := c.high - c.low + 1
		for v := c.low; v <= c.high; v++ {
			if n, mean := seen[v], names/size; n < mean/2 || n > 2*mean {
				t.Errorf("%s of field %d: %d comes %d times of %d", c.text, c.field, v, n, names)
			}
		}
		if len(seen) != size {
			t.Errorf("%s of field %d has the values %v", c.text, c.field, seen)
		}
	}
}
