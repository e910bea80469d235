package jobs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// bounds are what Except, Only, StartAt and EndAt of a job leave of its schedule, and by how much Jitter moves it then. The text of a
// Schedule has them behind the fields, so that a text, and the job's name, are enough to compute the ticks:
// "0 9 * * * except 2026-12-24 from 2026-01-01T00:00:00Z".
type bounds struct {
	except, only []string
	from, until  time.Time     // the first and last instant of ticks; zero: no bound
	jitter, plus time.Duration // a bound of the offset, and the offset
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
func cutBounds(name string, fields []string) (rest []string, b bounds, err error) {
	i := slices.IndexFunc(fields, isBoundsWord)
	if i < 0 {
		return fields, b, nil
	}
	rest, fields = fields[:i], fields[i:]
	for ; len(fields) > 0 && err == nil; fields = fields[2:] {
		word := fields[0]
		if len(fields) == 1 {
			return nil, b, fmt.Errorf("nothing follows %q", clip(word))
		}
		switch value := fields[1]; word {
		case exceptWord:
			err = addDates(&b.except, value)
		case onlyWord:
			err = addDates(&b.only, value)
		case fromWord:
			b.from, err = parseInstant(value)
		case untilWord:
			b.until, err = parseInstant(value)
		case jitterWord:
			err = b.readJitter(name, value)
		case plusWord:
			b.plus, err = parseOffset(value, 0)
		default:
			return nil, b, fmt.Errorf("%q is none of except, only, from, until, jitter and plus", clip(word))
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
		return t, fmt.Errorf("%q is not an instant such as 2026-12-24T08:00:00Z", clip(text))
	}
	return t.UTC(), checkInstant(t)
}

// checkInstant checks a bound that is set.
func checkInstant(t time.Time) error {
	switch y := t.UTC().Year(); {
	case y < minYear || y > maxYear:
		return fmt.Errorf("the year %d is outside %d to %d", y, minYear, maxYear)
	case t.Nanosecond()%int(time.Millisecond) != 0:
		return errors.New("is not a whole number of milliseconds")
	}
	return nil
}

// text returns the bounds as cutBounds reads them, with a space before each; "" for none.
func (b bounds) text() string { return b.daysText() + b.offsetText(false) }

// daysText is text without the offset.
func (b bounds) daysText() string {
	var text strings.Builder
	for _, part := range []struct{ word, value string }{
		{exceptWord, strings.Join(b.except, ",")}, {onlyWord, strings.Join(b.only, ",")},
		{fromWord, instantText(b.from)}, {untilWord, instantText(b.until)},
	} {
		if part.value != "" {
			text.WriteString(" " + part.word + " " + part.value)
		}
	}
	return text.String()
}

// words returns what the bounds say, as parts of a schedule's words.
func (b bounds) words() (parts []string) {
	if len(b.only) > 0 {
		parts = append(parts, "only on "+dateWords(b.only))
	}
	if len(b.except) > 0 {
		parts = append(parts, "except on "+dateWords(b.except))
	}
	if !b.from.IsZero() {
		parts = append(parts, "from "+instantText(b.from)+" on")
	}
	if !b.until.IsZero() {
		parts = append(parts, "until "+instantText(b.until))
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

func instantText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(instantForm)
}

func (b bounds) set() bool { return b.text() != "" }

// bound gives a schedule without bounds these ones. Bounds that leave no tick at all are refused.
func (s *Schedule) bound(b bounds) error {
	if n := len(b.except) + len(b.only); n > MaxDates {
		return fmt.Errorf("except and only have %d dates and ranges, more than %d; join neighbouring days to ranges", n, MaxDates)
	}
	days, err := newDaySet(b.except, b.only)
	if err != nil {
		return err
	}
	if s.cal.days, s.bounds = days, b; b.set() && s.Next(time.Time{}).IsZero() {
		return fmt.Errorf("no tick is left by%s", clip(b.text()))
	}
	return nil
}

// start returns an instant, or the first one at which there may be a tick if that is later.
func (b bounds) start(at time.Time) time.Time {
	if at.Before(b.from) {
		return b.from
	}
	return at
}

// end returns an instant, or the first one at which there is no more tick if that is earlier.
func (b bounds) end(at time.Time) time.Time {
	if past := b.until.Add(time.Nanosecond); !b.until.IsZero() && past.Before(at) {
		return past
	}
	return at
}
