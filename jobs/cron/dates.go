package cron

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs/spec"
)

// MaxDates bounds the dates and ranges of Bounds.Except and Bounds.Only together.
const MaxDates = 500

// The years of dates and of start and end.
const (
	minYear = 2000
	maxYear = 2199
)

// dateForm is how a date is written, and dateRange separates the two of a range.
const (
	dateForm  = time.DateOnly
	dateRange = ".."
)

// farDay is beyond each day that a schedule looks at, in days since 1970.
const farDay = math.MaxInt64 / (1000 * daySeconds * 4)

// daySpan is the days from first to last, since 1970.
type daySpan struct{ first, last int64 }

// daySet is the days that except and only leave, as spans in order with days between them. nil is every day.
type daySet []daySpan

// parseDate parses a date, or a range with its first and last day.
func parseDate(text string) (daySpan, error) {
	from, to, ranged := strings.Cut(text, dateRange)
	first, err := parseDay(from)
	if err != nil || !ranged {
		return daySpan{first, first}, err
	}
	last, err := parseDay(to)
	if err == nil && last < first {
		err = fmt.Errorf("the range %s is backwards; write its first day first", spec.Clip(text))
	}
	return daySpan{first, last}, err
}

// CheckDate checks a date such as 2026-12-24, or a range such as 2026-12-24..2027-01-02.
func CheckDate(text string) error {
	_, err := parseDate(text)
	return err
}

func parseDay(text string) (int64, error) {
	t, err := time.Parse(dateForm, text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a date such as 2026-12-24, or a range such as 2026-12-24..2027-01-02", spec.Clip(text))
	}
	if y := t.Year(); y < minYear || y > maxYear {
		return 0, fmt.Errorf("%s is outside the years %d to %d", text, minYear, maxYear)
	}
	return t.Unix() / daySeconds, nil
}

// newDaySet returns the days of only, each day without one, less the days of except. All have been checked.
func newDaySet(except, only []string) (daySet, error) {
	if len(except)+len(only) == 0 {
		return nil, nil
	}
	left := daySet{{-farDay, farDay}}
	if len(only) > 0 {
		spans, err := parseDates(only)
		if err != nil {
			return nil, err
		}
		left = spans
	}
	holes, err := parseDates(except)
	if err != nil {
		return nil, err
	}
	if left = left.without(holes); len(left) == 0 {
		return nil, errors.New("leave no day: except has all the days of only")
	}
	return left, nil
}

// parseDates parses a list, and joins what overlaps or adjoins.
func parseDates(list []string) (daySet, error) {
	spans := make(daySet, 0, len(list))
	for _, text := range list {
		s, err := parseDate(text)
		if err != nil {
			return nil, err
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b daySpan) int { return int(a.first - b.first) })
	out := spans[:0]
	for _, s := range spans {
		if n := len(out); n > 0 && s.first <= out[n-1].last+1 {
			out[n-1].last = max(out[n-1].last, s.last)
			continue
		}
		out = append(out, s)
	}
	return out, nil
}

// without returns the days of d that are not in holes.
func (d daySet) without(holes daySet) daySet {
	out := daySet{}
	for _, s := range d {
		for _, h := range holes {
			if h.last < s.first || h.first > s.last {
				continue
			}
			if h.first > s.first {
				out = append(out, daySpan{s.first, h.first - 1})
			}
			s.first = h.last + 1
		}
		if s.first <= s.last {
			out = append(out, s)
		}
	}
	return out
}

// next returns the span of the first day at or after day, cut off before day; false when there is none.
func (d daySet) next(day int64) (daySpan, bool) {
	if d == nil {
		return daySpan{day, farDay}, true
	}
	i := sort.Search(len(d), func(i int) bool { return d[i].last >= day })
	if i == len(d) {
		return daySpan{}, false
	}
	return daySpan{max(d[i].first, day), d[i].last}, true
}

// prev returns the span of the last day at or before day, cut off after day; false when there is none.
func (d daySet) prev(day int64) (daySpan, bool) {
	if d == nil {
		return daySpan{-farDay, day}, true
	}
	i := sort.Search(len(d), func(i int) bool { return d[i].first > day }) - 1
	if i < 0 {
		return daySpan{}, false
	}
	return daySpan{d[i].first, min(d[i].last, day)}, true
}

func (d daySet) has(day int64) bool {
	span, ok := d.next(day)
	return ok && span.first == day
}

// ends returns the first and the last day at which a span of the set begins or ends.
func (d daySet) ends() (first, last int64) {
	first, last = d[0].first, d[len(d)-1].last
	if first == -farDay {
		first = d[0].last
	}
	if last == farDay {
		last = d[len(d)-1].first
	}
	return first, last
}
