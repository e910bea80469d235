package cron_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/escapement/escapement/jobs/cron"
)

func parseFor(t fataler, name, expr, zone string) *cron.Schedule {
	t.Helper()
	s, err := cron.ParseFor(name, expr, zone)
	if err != nil {
		t.Fatalf("%q for %q in %q: %v", expr, name, zone, err)
	}
	return s
}

// Stored schedules rest on these values: a change of them moves every job that has an H.
func TestHashIsPinned(t *testing.T) {
	for _, c := range []struct{ name, expr, want string }{
		{"settle-orders", "H H H H H H", "7 38 4 23 10 4"},
		{"settle-orders", "H/15 * * * *", "8-59/15 * * * *"},
		{"settle-orders", "H(0-29)/10 H(9-17) * * *", "8-29/10 13 * * *"},
		{"settle-orders", "0 0 H/7 * *", "0 0 2-28/7 * *"},
		{"settle-orders", "0 0 * H(JAN-mar) H(Mon-fri)", "0 0 * 1 5"},
		{"report", "H H * * *", "34 3 * * *"},
		{"report", "H,30 H(0-5),H(12-17) * * *", "34,30 3,15 * * *"},
		{"a", "H * * * * *", "34 * * * * *"},
		{"a", "H/1 H/24 1-28 * *", "0-59/1 10-23/24 1-28 * *"},
	} {
		s := parseFor(t, c.name, c.expr, "")
		if got := s.Resolved(); got != c.want || s.String() != c.expr {
			t.Errorf("%s for %s is %s (written %s), want %s", c.expr, c.name, got, s, c.want)
		}
	}
	if got := parseFor(t, "a", "H 3 * * *", "Europe/Rome").Resolved(); got != "CRON_TZ=Europe/Rome 44 3 * * *" {
		t.Errorf("with a zone: %s", got)
	}
}

// Over many names H takes every value of its range, none outside, each about as often. With a step it is the place of the first.
func TestHashSpreads(t *testing.T) {
	const names = 1500
	for _, c := range []struct {
		field, low, high int
		text             string
	}{
		{0, 0, 59, "H"}, {2, 0, 23, "H"}, {3, 1, 28, "H"}, {4, 1, 12, "H"}, {5, 0, 6, "H"}, {1, 10, 19, "H(10-19)"},
		{5, 1, 5, "H(MON-FRI)"}, {2, 7, 7, "H(7-7)"}, {1, 0, 14, "H/15"}, {2, 3, 8, "H(3-20)/6"},
	} {
		seen := map[int]int{}
		for n := range names {
			fields := []string{"0", "0", "0", "*", "*", "*"}
			fields[c.field] = c.text
			var v int
			if _, err := fmt.Sscan(strings.Fields(parseFor(t, fmt.Sprint("job-", n), strings.Join(fields, " "), "").Resolved())[c.field], &v); err != nil {
				t.Fatal(err)
			}
			seen[v]++
		}
		size := c.high - c.low + 1
		for v := c.low; v <= c.high; v++ {
			if n, mean := seen[v], names/size; n < mean/3 || n > 3*mean {
				t.Errorf("%s of field %d: %d comes %d times of %d", c.text, c.field, v, n, names)
			}
		}
		if len(seen) != size {
			t.Errorf("%s of field %d has the values %v", c.text, c.field, seen)
		}
	}
}

func TestHashRefuses(t *testing.T) {
	for _, c := range []struct{ expr, words string }{
		{"HH * * * *", `"HH" is not H, H/15`},
		{"H-5 * * * *", "is not H, H/15"},
		{"5-H * * * *", "is not a value, a range"},
		{"*/H * * * *", "is not a value, a range"},
		{"H() * * * *", "is not H, H/15"},
		{"H(0-5)/ * * * *", "is not H, H/15"},
		{"H(0-99999) * * * *", "is not H, H/15"},
		{"H/0 * * * *", "step 0 is outside 1 to 60"},
		{"* H(9-17)/10 * * *", "step 10 is outside 1 to 9"},
		{"H(0-60) * * * *", "60 is outside 0 to 59"},
		{"H(30-10) * * * *", "the range is backwards"},
		{"* * * * H(1-7)", "7 in H is outside 0 to 6; write 0 for Sunday"},
		{"* * H(1-31) * *", "31 in H is outside 1 to 28, the days that every month has"},
		{"* * H/29 * *", "step 29 is outside 1 to 28"},
		{"* * * H(jan-xyz) *", `"xyz" is not a month; the names are JAN to DEC`},
		{"* H(mon-fri) * * *", `hour "H(mon-fri)": "mon" is not a number`},
		{"@H", "descriptor is not known"},
		{"@every H", "is not a duration"},
		{"H H 30 2 *", `never fires: there is no such day in the months given; with this job's name it means "44 10 30 2 *"`},
		{"H H 30-31 2 H/3,*", "never fires"},
		{"H(1-2) H 31 9,11,H(6-6)/1 */1", "never fires"},
	} {
		s, err := cron.ParseFor("a", c.expr, "")
		if err == nil || s != nil {
			t.Errorf("%q is accepted as %v", c.expr, s)
			continue
		}
		if text := err.Error(); !strings.Contains(text, c.words) || strings.Contains(text, "\n") || len(text) > 400 {
			t.Errorf("%q: %q, want %q in it", c.expr, text, c.words)
		}
	}
	// Without a name: each field with an H is named.
	_, err := cron.Parse("H 5 H * *", "")
	if err == nil || strings.Count(err.Error(), "H needs the job's name") != 2 {
		t.Errorf("without a name: %v", err)
	}
}
