package ics

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/teambition/rrule-go"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
)

const (
	// icsYears is for how many years an event that repeats is read, from the beginning of the decade on: ten years ahead at least.
	// Within a decade all nodes read the same days, whenever they started.
	icsYears = 20
	// icsInterval bounds INTERVAL, which rrule-go adds to years and days and does not check for overflows.
	icsInterval = 1000
	// icsCost bounds the days that are walked over for the rules of a file, each of a daily rule counted as icsDaily. icsGap is
	// added for each rule, for the walk from its last day in the years that are read to the next one. All is half a second.
	icsCost, icsDaily, icsGap = 20_000_000, 10, 10_000
	// icsOldest is the first year in which an event that repeats may begin. rrule-go takes the first day of the year 1 for no day.
	icsOldest = 1600
)

// icsParts are the parts of a rule that are read. rrule-go has two of its own: DTSTART, and BYEASTER, which indexes beyond its table.
var icsParts = []string{
	"FREQ", "INTERVAL", "COUNT", "UNTIL", "WKST", "BYMONTH", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO", "BYDAY", "BYSETPOS",
	"BYHOUR", "BYMINUTE", "BYSECOND",
}

// icsWindow is what the rules of a file share.
type icsWindow struct {
	decade int
	cost   int // the rest of icsCost
}

func (w *icsWindow) start() time.Time { return time.Date(w.decade, 1, 1, 0, 0, 0, 0, time.UTC) }

func (w *icsWindow) has(day time.Time) bool { return !day.Before(w.start()) && day.Before(w.end()) }

// end is the first instant after the years that are read.
func (w *icsWindow) end() time.Time { return w.start().AddDate(icsYears, 0, 0) }

// days returns the days of the window on which a rule comes, in order.
func (w *icsWindow) days(rule, start icsLine) (days []time.Time, err *Fault) {
	fault := func(msg string) *Fault {
		return icsFault(rule.at, "repeats (%s), %s; correct the rule, or give the file an event for each of its days", spec.Clip(rule.name+":"+rule.value), msg)
	}
	first, err := icsTime(start)
	if err != nil {
		return nil, err
	}
	opt, msg := readRule(strings.ToUpper(rule.value), start.zone)
	if msg != "" {
		return nil, fault(msg)
	}
	if first.Year() < icsOldest {
		return nil, fault(fmt.Sprintf("and begins before the year %d", icsOldest))
	}
	opt.Dtstart = first
	if end := w.end().Add(-time.Second); opt.Until.IsZero() || opt.Until.After(end) {
		opt.Until = end
	}
	walk := (icsGap + max(0, int(opt.Until.Sub(first)/(24*time.Hour)))) * (1 + strings.Count(rule.value, ","))
	if opt.Freq == rrule.DAILY {
		walk *= icsDaily
	}
	if w.cost -= walk; w.cost < 0 {
		return nil, fault("and the rules of this file are too many for the years since they began")
	}
	r, wrong := rrule.NewRRule(*opt)
	if wrong != nil {
		return nil, fault("in which " + wrong.Error())
	}
	if first.After(opt.Until) { // begins after the years that are read, or ends before it begins
		return nil, nil
	}
	next := r.Iterator()
	t, ok := next()
	if !ok || !t.Equal(first) {
		return nil, icsFault(rule.at, "starts on %s, which is no day of its rule %s; correct DTSTART or RRULE", first.Format(time.DateOnly), spec.Clip(rule.value))
	}
	for ; ok; t, ok = next() {
		if !t.Before(w.start()) {
			days = append(days, t.Truncate(24*time.Hour))
		}
	}
	return days, nil
}

// readRule reads a rule that comes at most once a day. The message is its fault, also where rrule-go would read another rule
// than the written one.
func readRule(text string, zone *time.Location) (opt *rrule.ROption, msg string) {
	parts := make(map[string]string)
	var rest []string // without UNTIL, of which rrule-go does not know the zone
	for part := range strings.SplitSeq(text, ";") {
		name, value, _ := strings.Cut(part, "=")
		if _, twice := parts[name]; twice || !slices.Contains(icsParts, name) {
			return nil, "of which " + print.Quote(part) + " is not understood"
		}
		if parts[name] = value; name != "UNTIL" {
			rest = append(rest, part)
		}
	}
	for name, most := range map[string]int{"INTERVAL": icsInterval, "COUNT": math.MaxInt} {
		if n, err := strconv.Atoi(parts[name]); parts[name] != "" && (err != nil || n < 1 || n > most) {
			return nil, fmt.Sprintf("in which %s is no number from 1 to %d", name, most)
		}
	}
	opt, err := rrule.StrToROption(strings.Join(rest, ";"))
	switch {
	case err != nil:
		return nil, fmt.Sprintf("which is no rule (%v)", err)
	case opt.Freq > rrule.DAILY || len(opt.Byhour) > 1 || len(opt.Byminute) > 1 || len(opt.Bysecond) > 1:
		return nil, "more than once a day, and a calendar has days"
	}
	if until := parts["UNTIL"]; until != "" {
		t, err := icsTime(icsLine{name: "UNTIL", value: until})
		switch {
		case err != nil:
			return nil, "and " + err.Msg
		case len(until) == len(rrule.DateFormat): // the whole day
			t = t.Add(24*time.Hour - time.Second)
		case strings.HasSuffix(until, "Z") && zone != nil:
			_, offset := t.In(zone).Zone()
			t = t.Add(time.Duration(offset) * time.Second)
		}
		opt.Until = t
	}
	return opt, badWeekday(opt)
}

// badWeekday refuses a weekday with a number, such as 4TH, where RFC 5545 has none: rrule-go passes over some numbers, and indexes
// beyond its tables by other numbers.
func badWeekday(opt *rrule.ROption) string {
	most := 0
	switch {
	case opt.Freq == rrule.MONTHLY || opt.Freq == rrule.YEARLY && len(opt.Bymonth) > 0:
		most = 5
	case opt.Freq == rrule.YEARLY && len(opt.Byweekno) == 0:
		most = 53
	}
	for _, day := range opt.Byweekday {
		if n := day.N(); n > most || n < -most {
			return "in which the number of BYDAY is beyond what such a rule can have"
		}
	}
	return ""
}
