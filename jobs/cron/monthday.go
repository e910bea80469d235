package cron

import (
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// monthDays are the days of a calendar that depend on the month: L, L-3, 15W and LW in the day of month, 5#2 and 5L in the day
// of week. The zero value has none.
type monthDays struct {
	fromEnd uint64 // bit n: n days before the last day of the month
	nearest uint64 // bit n: the weekday nearest to day n; bit 0: the last weekday of the month
	nth     uint64 // bit 7*n+d: the nth day d of the month; n = 0: the last
}

const mostFromEnd = 30 // L-30 is the first day of a month of 31

var (
	domForm = regexp.MustCompile(`(?i)^(?:L(?:-([0-9]{1,4}))?|(L)W|([0-9]{1,4})W)$`)
	dowForm = regexp.MustCompile(`(?i)^([0-9]{1,4}|[A-Z]{3,9})(?:#([0-9]{1,4})|L)$`)
)

// isMonthDay reports whether an element of field i has the form of a day that depends on the month.
func isMonthDay(element string, i int) bool {
	switch i {
	case domField:
		return domForm.MatchString(element)
	case dowField:
		return dowForm.MatchString(element)
	}
	return false
}

// add adds one element of field i, whose form isMonthDay has found.
func (m *monthDays) add(element string, i int) error {
	rule := fieldRules[i]
	if i == dowField {
		part := dowForm.FindStringSubmatch(element)
		day, err := rule.value(part[1])
		if err != nil {
			return err
		}
		n := 0 // the last
		if part[2] != "" {
			if n, _ = strconv.Atoi(part[2]); n < 1 || n > 5 {
				return fmt.Errorf("%q: a month has the same weekday 4 or 5 times; write 1 to 5 after #, or %sL for the last",
					element, part[1])
			}
		}
		m.nth |= 1 << uint(7*n+day%sunday)
		return nil
	}
	part := domForm.FindStringSubmatch(element)
	switch {
	case part[2] != "":
		m.nearest |= 1
	case part[3] != "":
		day, err := rule.value(part[3])
		if err != nil {
			return err
		}
		m.nearest |= 1 << uint(day)
	default:
		n, _ := strconv.Atoi(part[1]) // "" is 0: the last day
		if n > mostFromEnd || part[1] != "" && n < 1 {
			return fmt.Errorf("%q: write L for the last day, and L-1 to L-%d for days before it", element, mostFromEnd)
		}
		m.fromEnd |= 1 << uint(n)
	}
	return nil
}

// cut returns a checked day field without its month days, and adds these to m. A field of nothing else becomes a value for
// the parser; alone reports that, so that the caller takes the value out again.
func (m *monthDays) cut(field string, i int) (rest string, alone bool, err error) {
	var others []string
	for e := range strings.SplitSeq(field, ",") {
		if !isMonthDay(e, i) {
			others = append(others, e)
		} else if err := m.add(e, i); err != nil {
			return "", false, err
		}
	}
	if len(others) == 0 {
		return "1", true, nil
	}
	return strings.Join(others, ","), false, nil
}

// matchesDom reports whether a date is one of the days of month.
func (m monthDays) matchesDom(y int, month time.Month, d, weekday int) bool {
	if m.fromEnd|m.nearest == 0 {
		return false
	}
	last := lastOf(y, month)
	return m.fromEnd>>uint(last-d)&1 != 0 || m.nearest != 0 && m.isNearest(d, last, weekday)
}

// isNearest reports whether the date d is the weekday nearest to a day of nearest. A Saturday's is the Friday before, a Sunday's the
// Monday after, and neither is in another month: the weekday of Saturday the first is Monday the third.
func (m monthDays) isNearest(d, last, weekday int) bool {
	at := func(day int) bool { return day >= 1 && day <= last && m.nearest>>uint(day)&1 != 0 }
	lastWeekday := d == last
	switch day := time.Weekday(weekday); {
	case day == time.Saturday || day == time.Sunday:
		return false
	case day == time.Monday && (at(d-1) || d == 3 && at(1)):
		return true
	case day == time.Friday && (at(d+1) || d == last-2 && at(last)):
		return true
	case day == time.Friday:
		lastWeekday = d >= last-2
	}
	return at(d) || m.nearest&1 != 0 && lastWeekday
}

// matchesDow reports whether a date is one of the days of week.
func (m monthDays) matchesDow(y int, month time.Month, d, weekday int) bool {
	if m.nth == 0 {
		return false
	}
	n := (d-1)/7 + 1
	return m.nth>>uint(7*n+weekday)&1 != 0 || m.nth>>uint(weekday)&1 != 0 && d > lastOf(y, month)-7
}

// lastOf is the number of days of a month.
func lastOf(y int, month time.Month) int {
	if month == time.February && (y%4 != 0 || y%100 == 0 && y%400 != 0) {
		return 28
	}
	return longest[month-1]
}

// domWords returns the words for the days of month: "the last day", "the weekday nearest to day 15".
func (m monthDays) domWords() (parts []string) {
	for n := range mostFromEnd + 1 {
		switch {
		case m.fromEnd>>uint(n)&1 == 0:
		case n == 0:
			parts = append(parts, "the last day")
		case n == 1:
			parts = append(parts, "the day before the last day")
		default:
			parts = append(parts, fmt.Sprintf("the %s day before the last day", ordinal(n)))
		}
	}
	for set := m.nearest; set != 0; set &= set - 1 {
		if n := bits.TrailingZeros64(set); n > 0 {
			parts = append(parts, fmt.Sprintf("the weekday nearest to day %d", n))
		} else {
			parts = append(parts, "the last weekday")
		}
	}
	return parts
}

// dowWords returns the words for the days of week: "the 2nd Friday of the month".
func (m monthDays) dowWords() (parts []string) {
	const last = 7 // the bits of the last ones of a month
	for _, set := range []uint64{m.nth >> last << last, m.nth & lowBits(last)} {
		for ; set != 0; set &= set - 1 {
			bit, which := bits.TrailingZeros64(set), "last"
			if bit >= last {
				which = ordinal(bit / 7)
			}
			parts = append(parts, "the "+which+" "+dayNames[bit%7])
		}
	}
	return parts
}

// domLacking reports whether some month of a least number of days lacks one of the days of month.
func (m monthDays) domLacking(least int) bool {
	return m.fromEnd>>uint(least) != 0 || m.nearest>>uint(least+1) != 0
}

// dowLacking reports whether some month lacks one of the days of week: only the fifth ones can be missing.
func (m monthDays) dowLacking() bool { return m.nth>>(7*5) != 0 }
