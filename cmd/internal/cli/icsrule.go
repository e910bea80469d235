package cli

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs/spec"
)

// icsYears is for how many years an event that repeats is read, from the beginning of the decade on: ten years ahead at least. Within a
// decade all nodes read the same days, whenever they started.
const icsYears = 20

// icsNth is a day such as 4TH, the fourth Thursday of a month, or -1MO, the last Monday.
var icsNth = regexp.MustCompile(`^([+-]?[1-5])(SU|MO|TU|WE|TH|FR|SA)$`)

// icsRule is a rule that repeats an event each year, or each so many years.
type icsRule struct {
	interval, count int       // count is 0 without one
	until           time.Time // the last day, of UNTIL or COUNT; zero without one
	month           time.Month
	day             int // of the month, without nth
	nth             int // of the weekday in the month; 0: the date
	weekday         time.Weekday
}

// yearlyRule reads an RRULE of an event that starts on a day. Faults of other rules say what is read.
func yearlyRule(l icsLine, start time.Time) (r icsRule, err *icsError) {
	fault := icsFault(l.at, "repeats (%s), and of recurrence only FREQ=YEARLY on one day of the year is read; give the file an event for each of its days, or list the days as dates",
		spec.Clip(l.name+":"+l.value))
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
	r.month, r.day = start.Month(), start.Day()
	month, day, weekday := take("BYMONTH"), take("BYMONTHDAY"), take("BYDAY")
	take("WKST") // of weeks, which no such rule has
	if len(part) > 0 || !r.readDate(month, day) || weekday != "" && (month == "" || day != "" || !r.readWeekday(weekday)) {
		return r, fault
	}
	if !r.in(start.Year()).Equal(start) {
		return r, icsFault(l.at, "starts on %s, which is no day of its rule %s; correct DTSTART or RRULE", start.Format(time.DateOnly), spec.Clip(l.value))
	}
	return r, nil
}

// readDate reads BYMONTH and BYMONTHDAY of one day of the year. A day without a month is one of each month.
func (r *icsRule) readDate(month, day string) bool {
	if month != "" {
		n, err := strconv.Atoi(month)
		if r.month = time.Month(n); err != nil || n < 1 || n > 12 {
			return false
		}
	}
	if day == "" {
		return true
	}
	n, err := strconv.Atoi(day)
	r.day = n
	return month != "" && err == nil && n >= 1 && n <= 31
}

// readWeekday reads BYDAY of one day of a month.
func (r *icsRule) readWeekday(text string) bool {
	m := icsNth.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	r.nth, _ = strconv.Atoi(m[1])
	for day := time.Sunday; day <= time.Saturday; day++ {
		if strings.EqualFold(day.String()[:2], m[2]) {
			r.weekday = day
		}
	}
	return true
}

// soughtIn is called for each year in which a rule's day is sought. A test counts.
var soughtIn = func(int) {}

// in is the rule's day in a year; zero where the year has none.
func (r icsRule) in(year int) time.Time {
	soughtIn(year)
	day := time.Date(year, r.month, r.day, 0, 0, 0, 0, time.UTC)
	if r.nth > 0 {
		first := time.Date(year, r.month, 1, 0, 0, 0, 0, time.UTC)
		day = first.AddDate(0, 0, int(r.weekday-first.Weekday()+7)%7+7*(r.nth-1))
	} else if r.nth < 0 {
		last := time.Date(year, r.month+1, 0, 0, 0, 0, 0, time.UTC)
		day = last.AddDate(0, 0, -int(last.Weekday()-r.weekday+7)%7+7*(r.nth+1))
	}
	if day.Month() != r.month { // February 29, or no fifth Monday
		return time.Time{}
	}
	return day
}

// endCount makes of COUNT the last day, where that is in a year before end.
func (r *icsRule) endCount(start time.Time, end int) {
	for year, n := start.Year(), 0; n < r.count && year < end; year += r.interval {
		day := r.in(year)
		if day.IsZero() {
			continue
		}
		if n++; n == r.count && (r.until.IsZero() || day.Before(r.until)) {
			r.until = day
		}
	}
}

// days are the rule's days in the years from first on, icsYears of them.
func (r icsRule) days(start time.Time, first int) (days []time.Time) {
	year := start.Year()
	if early := first - year; early > 0 {
		year += (early + r.interval - 1) / r.interval * r.interval
	}
	for ; year < first+icsYears; year += r.interval {
		if day := r.in(year); !day.IsZero() && !r.over(day) {
			days = append(days, day)
		}
	}
	return days
}

// comes reports whether a day is one of the rule.
func (r icsRule) comes(start, day time.Time) bool {
	years := day.Year() - start.Year()
	return years >= 0 && years%r.interval == 0 && r.in(day.Year()).Equal(day) && !r.over(day)
}

func (r icsRule) over(day time.Time) bool { return !r.until.IsZero() && day.After(r.until) }
