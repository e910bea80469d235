package cron

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs/spec"
)

// Bounds are a job's settings that leave out ticks of its schedule, and its jitter, which moves the ticks that are left. The text of a
// Schedule has them behind the fields, so that a text, and the job's name, are enough to compute the ticks:
// "0 9 * * * except 2026-12-24 from 2026-01-01T00:00:00Z".
type Bounds struct {
	// Except and Only are dates and ranges of dates: days without ticks, and the only days with ticks.
	Except, Only []string
	// From and Until are the first and the last instant of ticks. Zero: no bound.
	From, Until time.Time
	// Jitter bounds the offset, which the job's name decides. 0: none.
	Jitter time.Duration

	plus time.Duration // the offset
}

// The words before the bounds in a schedule's text.
const (
	exceptWord = "except"
	onlyWord   = "only"
	fromWord   = "from"
	untilWord  = "until"
)

// instantForm is how bounds are written: UTC and whole milliseconds.
const instantForm = "2006-01-02T15:04:05.999Z07:00"

func isBoundsWord(field string) bool {
	return field == exceptWord || field == onlyWord || field == fromWord || field == untilWord ||
		field == jitterWord || field == plusWord
}

// cutBounds splits the bounds from the fields of an expression for a job; "" for none.
func cutBounds(name string, fields []string) (rest []string, b Bounds, err error) {
	i := slices.IndexFunc(fields, isBoundsWord)
	if i < 0 {
		return fields, b, nil
	}
	rest, fields = fields[:i], fields[i:]
	for ; len(fields) > 0 && err == nil; fields = fields[2:] {
		word := fields[0]
		if len(fields) == 1 {
			return nil, b, fmt.Errorf("nothing follows %q", spec.Clip(word))
		}
		switch value := fields[1]; word {
		case exceptWord:
			err = addDates(&b.Except, value)
		case onlyWord:
			err = addDates(&b.Only, value)
		case fromWord:
			b.From, err = parseInstant(value)
		case untilWord:
			b.Until, err = parseInstant(value)
		case jitterWord:
			err = b.readJitter(name, value)
		case plusWord:
			b.plus, err = parseOffset(value, 0)
		default:
			return nil, b, fmt.Errorf("%q is none of except, only, from, until, jitter and plus", spec.Clip(word))
		}
		if err != nil {
			return nil, b, fmt.Errorf("%s: %w", word, err)
		}
	}
	return rest, b, nil
}

func addDates(to *[]string, value string) error {
	for text := range strings.SplitSeq(value, ",") {
		if _, err := parseDate(text); err != nil {
			return err
		}
		*to = append(*to, text)
	}
	return nil
}

func parseInstant(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%q is not an instant such as 2026-12-24T08:00:00Z", spec.Clip(text))
	}
	return t.UTC(), CheckInstant(t)
}

// CheckInstant checks a From or Until that is set.
func CheckInstant(t time.Time) error {
	switch y := t.UTC().Year(); {
	case y < minYear || y > maxYear:
		return fmt.Errorf("the year %d is outside %d to %d", y, minYear, maxYear)
	case t.Nanosecond()%int(time.Millisecond) != 0:
		return errors.New("is not a whole number of milliseconds")
	}
	return nil
}

// text returns the bounds as cutBounds reads them, with a space before each; "" for none.
func (b Bounds) text() string { return b.daysText() + b.offsetText(false) }

// daysText is text without the offset.
func (b Bounds) daysText() string {
	var text strings.Builder
	for _, part := range []struct{ word, value string }{
		{exceptWord, strings.Join(b.Except, ",")}, {onlyWord, strings.Join(b.Only, ",")},
		{fromWord, FormatInstant(b.From)}, {untilWord, FormatInstant(b.Until)},
	} {
		if part.value != "" {
			text.WriteString(" " + part.word + " " + part.value)
		}
	}
	return text.String()
}

// words returns the bounds in words, as parts of a schedule's words.
func (b Bounds) words() (parts []string) {
	if len(b.Only) > 0 {
		parts = append(parts, "only on "+dateWords(b.Only))
	}
	if len(b.Except) > 0 {
		parts = append(parts, "except on "+dateWords(b.Except))
	}
	if !b.From.IsZero() {
		parts = append(parts, "from "+FormatInstant(b.From)+" on")
	}
	if !b.Until.IsZero() {
		parts = append(parts, "until "+FormatInstant(b.Until))
	}
	if b.plus > 0 {
		parts = append(parts, b.plus.String()+" later")
	}
	return parts
}

// fewDatesMost bounds the dates that words list one by one.
const fewDatesMost = 4

func dateWords(list []string) string {
	var parts []string
	for i, text := range list {
		if i == fewDatesMost-1 && len(list) > fewDatesMost {
			parts = append(parts, fmt.Sprintf("%d more", len(list)-i))
			break
		}
		parts = append(parts, strings.Replace(text, dateRange, " to ", 1))
	}
	return andList(parts)
}

// FormatInstant returns an instant as bounds have it; "" for the zero time.
func FormatInstant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(instantForm)
}

// IsSet reports whether there is any bound or a jitter.
func (b Bounds) IsSet() bool { return b.text() != "" }

// bound gives a schedule without bounds these ones. Bounds that leave no tick at all are refused.
func (s *Schedule) bound(b Bounds) error {
	if n := len(b.Except) + len(b.Only); n > MaxDates {
		return fmt.Errorf("except and only have %d dates and ranges, more than %d; join neighbouring days to ranges", n, MaxDates)
	}
	days, err := newDaySet(b.Except, b.Only)
	if err != nil {
		return err
	}
	if s.cal.days, s.bounds = days, b; b.IsSet() && s.Next(time.Time{}).IsZero() {
		return fmt.Errorf("no tick is left by%s", spec.Clip(b.text()))
	}
	return nil
}

// MaxPause is how long Except and Only may leave no tick from now on, in years.
const MaxPause = 5

// TicksSoon reports whether Except and Only leave a tick within MaxPause, from now or from the start if that is later. A tick of
// Only in the past counts too: a node whose job has had its last tick must still start.
func (s *Schedule) TicksSoon(now time.Time) bool {
	if s.cal.days == nil {
		return true
	}
	began := now
	if began.Before(s.bounds.From) {
		began = s.bounds.From
	}
	end, after := began.AddDate(MaxPause, 0, 0), began
	if first, _ := s.cal.days.ends(); len(s.bounds.Only) > 0 {
		if day := unixUTC((first - 1) * daySeconds); day.Before(after) { // a day earlier, whatever the zone
			after = day
		}
	}
	days := *s
	days.bounds.Until = time.Time{}
	tick := days.Next(after.Add(-time.Nanosecond))
	return !tick.IsZero() && !tick.After(end)
}

// start returns an instant, or the first one at which there may be a tick if that is later.
func (b Bounds) start(at time.Time) time.Time {
	if at.Before(b.From) {
		return b.From
	}
	return at
}

// end returns an instant, or the first one at which there is no more tick if that is earlier.
func (b Bounds) end(at time.Time) time.Time {
	if past := b.Until.Add(time.Nanosecond); !b.Until.IsZero() && past.Before(at) {
		return past
	}
	return at
}
