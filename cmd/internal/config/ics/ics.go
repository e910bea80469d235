// Package ics reads the days of iCalendar files.
package ics

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
)

// Fault is a fault of a calendar file, at a line from 1; 0: of the whole file.
type Fault struct {
	Line int
	Msg  string
}

func icsFault(line int, format string, args ...any) *Fault {
	return &Fault{line, fmt.Sprintf(format, args...)}
}

// icsLine is one property of an iCalendar file (RFC 5545), unfolded.
type icsLine struct {
	at          int // the line on which it begins, from 1; 0: the property is absent
	name, value string
	zone        *time.Location // of TZID; nil: none, or not in the zone files
}

// icsEvent is a VEVENT. Its properties may come in any order.
type icsEvent struct {
	at                         int
	summary, status            string
	start, end, duration, rule icsLine
	more, less                 []icsLine // RDATE and EXDATE
	unread                     icsLine   // of a recurrence
}

// Parse returns the days of the events of an iCalendar file, as jobs.Job has them in Except: in order, with neighbours joined to
// ranges. The day of a time is the day that is written, in the zone in which it is written. Cancelled events are left out. Events
// that repeat are read for the decade of now and the next one. The text is UTF-8.
func Parse(text []byte, now time.Time) ([]string, *Fault) {
	lines := unfoldICS(text)
	if len(lines) == 0 || lines[0].name != "BEGIN" || !strings.EqualFold(lines[0].value, "VCALENDAR") {
		return nil, icsFault(1, "is no iCalendar file, which begins with BEGIN:VCALENDAR; name the right file")
	}
	events, err := icsEvents(lines)
	if err != nil {
		return nil, err
	}
	var spans []icsSpan
	w, cancelled := &icsWindow{decade: now.Year() / 10 * 10, cost: icsCost}, 0
	for _, e := range events {
		if e.status == "CANCELLED" && e.unread.name != "RECURRENCE-ID" {
			cancelled++
			continue
		}
		all, err := e.spans(w)
		if err != nil {
			return nil, icsFault(err.Line, "the event %s %s", print.Quote(e.summary), err.Msg)
		}
		spans = append(spans, all...)
	}
	switch spans = since(spans, icsFirst); {
	case len(spans) > 0:
		return joinSpans(spans, now), nil
	case len(events) == 0:
		return nil, icsFault(0, "has no events; name the right file")
	case cancelled == len(events):
		return nil, icsFault(0, "has only cancelled events; name the right file, or remove the calendar")
	default:
		return nil, icsFault(0, "has no days in the years from %d to %d; name the right file", w.decade, w.decade+icsYears-1)
	}
}

// icsProperty is NAME, parameters, which may have a colon in quotes, and value.
var (
	icsProperty = regexp.MustCompile(`^([A-Za-z0-9-]+)((?:;(?:[^":]|"[^"]*")*)?):(.*)$`)
	icsZone     = regexp.MustCompile(`(?i);TZID="?([A-Za-z0-9/_+-]+)`)
)

// unfoldICS splits a text into its properties: a line that begins with a blank continues the line before. Lines without a property are left out.
func unfoldICS(text []byte) (list []icsLine) {
	var whole []byte
	at := 0
	end := func() {
		if m := icsProperty.FindSubmatch(whole); m != nil {
			l := icsLine{at: at, name: strings.ToUpper(string(m[1])), value: strings.TrimSpace(string(m[3]))}
			if z := icsZone.FindSubmatch(m[2]); z != nil {
				l.zone, _ = time.LoadLocation(string(z[1])) // of another program's name, such as "W. Europe Standard Time": nil
			}
			list = append(list, l)
		}
	}
	i := 0
	for line := range bytes.SplitSeq(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), []byte("\n")) {
		i++
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) > 0 && (line[0] == ' ' || line[0] == '\t') {
			whole = append(whole, line[1:]...)
			continue
		}
		end()
		whole, at = append(whole[:0], line...), i
	}
	end()
	return list
}

// icsEvents collects the events. Parts inside of an event, such as an alarm, and other parts of the file have properties of the same
// names, which are not the event's.
func icsEvents(lines []icsLine) (events []icsEvent, err *Fault) {
	var open []icsLine
	for _, l := range lines {
		switch l.name {
		case "BEGIN":
			if l.value = strings.ToUpper(l.value); l.value == "VEVENT" {
				events = append(events, icsEvent{at: l.at})
			}
			open = append(open, l)
		case "END":
			if len(open) == 0 || !strings.EqualFold(open[len(open)-1].value, l.value) {
				return nil, icsFault(l.at, "END:%s ends nothing that is open; get the file anew", spec.Clip(l.value))
			}
			open = open[:len(open)-1]
		default:
			if len(open) > 0 && open[len(open)-1].value == "VEVENT" {
				events[len(events)-1].set(l)
			}
		}
	}
	if n := len(open); n > 0 {
		return nil, icsFault(open[n-1].at, "BEGIN:%s has no end: the file is cut off; get it anew", spec.Clip(open[n-1].value))
	}
	return events, nil
}

func (e *icsEvent) set(l icsLine) {
	switch l.name {
	case "SUMMARY":
		e.summary = strings.NewReplacer(`\,`, ",", `\;`, ";", `\\`, `\`, `\n`, " ", `\N`, " ").Replace(l.value)
	case "STATUS":
		e.status = strings.ToUpper(l.value)
	case "DTSTART":
		e.start = l
	case "DTEND":
		e.end = l
	case "DURATION":
		e.duration = l
	case "RRULE":
		if e.rule.at > 0 {
			e.unread = l // a second one
		}
		e.rule = l
	case "RDATE":
		e.more = append(e.more, l)
	case "EXDATE":
		e.less = append(e.less, l)
	case "EXRULE", "RECURRENCE-ID":
		e.unread = l
	}
}

// spans are the days of an event, each time that it comes.
func (e *icsEvent) spans(w *icsWindow) (spans []icsSpan, err *Fault) {
	if e.unread.at > 0 {
		return nil, icsFault(e.unread.at, "repeats with exceptions (%s) that are not read; give the file an event for each of its days, or list the days as dates",
			spec.Clip(e.unread.name+":"+e.unread.value))
	}
	s, err := e.days()
	if err != nil {
		return nil, err
	}
	starts := []time.Time{s.first}
	if e.rule.at > 0 {
		if starts, err = w.days(e.rule, e.start); err != nil {
			return nil, err
		}
	}
	more, err := icsDates(e.more)
	if err != nil {
		return nil, err
	}
	less, err := icsDates(e.less)
	if err != nil {
		return nil, err
	}
	comes := make(map[time.Time]bool) // false: left out
	for _, day := range starts {
		comes[day] = true
	}
	for _, d := range more {
		comes[d.day] = true
	}
	for _, d := range less {
		if _, ok := comes[d.day]; !ok && (e.rule.at == 0 || w.has(d.day)) {
			return nil, icsFault(d.at, "has EXDATE: it does not come on %s; correct EXDATE, or remove it", d.day.Format(time.DateOnly))
		}
		comes[d.day] = false
	}
	for day, ok := range comes {
		if ok {
			spans = append(spans, icsSpan{day, day.Add(s.last.Sub(s.first))})
		}
	}
	return spans, nil
}

// icsDate is a day of an RDATE or EXDATE.
type icsDate struct {
	at  int
	day time.Time
}

// icsDates reads the days of lists of dates or times.
func icsDates(lines []icsLine) (dates []icsDate, err *Fault) {
	for _, l := range lines {
		for text := range strings.SplitSeq(l.value, ",") {
			t, err := icsTime(icsLine{at: l.at, name: l.name, value: text})
			if err != nil {
				return nil, err
			}
			dates = append(dates, icsDate{l.at, t.Truncate(24 * time.Hour)})
		}
	}
	return dates, nil
}

// days returns the days of an event. The end is the first instant that is no more of it.
func (e *icsEvent) days() (s icsSpan, err *Fault) {
	if e.start.at == 0 {
		return s, icsFault(e.at, "has no DTSTART; give it one, or remove it")
	}
	start, err := icsTime(e.start)
	if err != nil {
		return s, err
	}
	day, end := start, start
	switch {
	case e.end.at > 0:
		end, err = icsTime(e.end)
	case e.duration.at > 0:
		end, err = icsAfter(start, e.duration)
	}
	switch {
	case err != nil:
		return s, err
	case end.Before(start):
		return s, icsFault(e.end.at, "ends before it starts; correct DTSTART or DTEND")
	case end.After(start):
		day = end.Add(-time.Nanosecond)
	}
	return icsSpan{start.Truncate(24 * time.Hour), day.Truncate(24 * time.Hour)}, nil
}

// icsTime reads 20261224 or 20261224T080000, with or without the Z of UTC, as a reading of the clock.
func icsTime(l icsLine) (time.Time, *Fault) {
	for _, form := range []string{"20060102", "20060102T150405", "20060102T150405Z"} {
		if t, err := time.Parse(form, l.value); err == nil {
			return t, nil
		}
	}
	return time.Time{}, icsFault(l.at, "has %s: %s is no date such as 20261224 and no time such as 20261224T080000", l.name, print.Quote(l.value))
}

var icsDuration = regexp.MustCompile(`^\+?P(?:(\d{1,4})W)?(?:(\d{1,5})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,8})M)?(?:(\d{1,8})S)?)?$`)

// icsAfter adds a duration such as P1D or PT1H30M.
func icsAfter(t time.Time, l icsLine) (time.Time, *Fault) {
	m := icsDuration.FindStringSubmatch(l.value)
	if m == nil {
		return t, icsFault(l.at, "has DURATION: %s is none such as P1D", print.Quote(l.value))
	}
	for i, unit := range []time.Duration{7 * 24 * time.Hour, 24 * time.Hour, time.Hour, time.Minute, time.Second} {
		n, _ := strconv.Atoi(m[i+1]) // "": 0
		t = t.Add(time.Duration(n) * unit)
	}
	return t, nil
}
