package cli

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// icsYears is for how many years an event that repeats is read, from the beginning of the decade on: ten years ahead at least. Within a
// decade all nodes read the same days, whenever they started.
const icsYears = 20

// icsNth is a day such as 4TH, the fourth Thursday of a month, or -1MO, the last Monday.
var icsNth = regexp.MustCompile(`^([+-]?[1-5])(SU|MO|TU|WE|TH|FR|SA)$`)

// icsRule is a rule that repeats an event each year, or each so many years.
type icsRule struct {
	interval, count int       // count is 0 without one
	until           time.Time // zero without one
	nth             int       // of the weekday in the month of the start; 0: the date of the start
}

// yearlyRule reads an RRULE of an event that starts on a day. Faults of other rules say what is read.
func yearlyRule(l icsLine, start time.Time) (r icsRule, err *icsError) {
	fault := icsFault(l.at, "repeats (%s), and of recurrence only FREQ=YEARLY on one day of the year is read; give the file an event for each of its days, or list the days as dates",
		clip(l.name+":"+l.value))
	part := map[string]string{"INTERVAL": "1", "COUNT": "0"}
	for text := range strings.SplitSeq(strings.ToUpper(l.value), ";") {
		name, value, _ := strings.Cut(text, "=")
		part[name] = value
	}
	take := func(name string) (value string) { value = part[name]; delete(part, name); return value }
	interval, bad := strconv.Atoi(take("INTERVAL"))
	count, alsoBad := strconv.Atoi(take("COUNT"))
	if r = (icsRule{interval: interval, count: count}); bad != nil || alsoBad != nil || interval < 1 || count < 0 || take("FREQ") != "YEARLY" {
		return r, fault
	}
	if interval > icsYears {
		return r, icsFault(l.at, "repeats each %d years, and events are read for %d; give the file an event for each of its days", interval, icsYears)
	}
	if until := take("UNTIL"); until != "" {
		if r.until, err = icsTime(icsLine{l.at, "UNTIL", until}); err != nil {
			return r, err
		}
	}
	month, day, weekday := take("BYMONTH"), take("BYMONTHDAY"), take("BYDAY")
	take("WKST") // of weeks, which no such rule has
	if len(part) > 0 || month != "" && month != strconv.Itoa(int(start.Month())) || day != "" && (month == "" || day != strconv.Itoa(start.Day())) {
		return r, fault
	}
	if weekday != "" {
		m := icsNth.FindStringSubmatch(weekday)
		if m == nil || month == "" || day != "" {
			return r, fault
		}
		r.nth, _ = strconv.Atoi(m[1])
		if !strings.EqualFold(start.Weekday().String()[:2], m[2]) || !r.in(start.Year(), start).Equal(start) {
			return r, icsFault(l.at, "starts on %s, which is no day of its rule %s; correct DTSTART or RRULE", start.Format(time.DateOnly), clip(l.value))
		}
	}
	return r, nil
}

// in is the rule's day in a year; zero where the year has none.
func (r icsRule) in(year int, start time.Time) time.Time {
	day := time.Date(year, start.Month(), start.Day(), 0, 0, 0, 0, time.UTC)
	if r.nth > 0 {
		first := time.Date(year, start.Month(), 1, 0, 0, 0, 0, time.UTC)
		day = first.AddDate(0, 0, int(start.Weekday()-first.Weekday()+7)%7+7*(r.nth-1))
	} else if r.nth < 0 {
		last := time.Date(year, start.Month()+1, 0, 0, 0, 0, 0, time.UTC)
		day = last.AddDate(0, 0, -int(last.Weekday()-start.Weekday()+7)%7+7*(r.nth+1))
	}
	if day.Month() != start.Month() { // February 29, or no fifth Monday
		return time.Time{}
	}
	return day
}

// days are the rule's days in the years from first on, icsYears of them.
func (r icsRule) days(start time.Time, first int) (days []time.Time) {
	for year, n := start.Year(), 0; year < first+icsYears && (r.count == 0 || n < r.count); year += r.interval {
		day := r.in(year, start)
		switch {
		case day.IsZero():
			continue
		case !r.until.IsZero() && day.After(r.until):
			return days
		}
		if n++; year >= first {
			days = append(days, day)
		}
	}
	return days
}
