package main

import (
	"strings"
	"time"
)

// when is an instant as a person gives it: absolute, or relative to Redis' now.
type when struct {
	at       time.Time
	from     time.Duration
	relative bool
}

// whenUsage is for the help of a flag.
const whenUsage = "2026-01-02T15:04:05Z, or +10m or -2h from now"

// parseInstant reads RFC 3339, whose letters may be small.
func parseInstant(text string) (time.Time, error) {
	return time.Parse(time.RFC3339Nano, strings.ToUpper(text))
}

// zoneless are forms of a date and time that only mean something with a zone.
var zoneless = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"}

// parseWhen reads the T of a flag; "" is the zero time.
func parseWhen(flag, text string) (when, error) {
	if text == "" {
		return when{}, nil
	}
	if at, err := parseInstant(text); err == nil {
		if at.IsZero() { // which would mean that the flag was not given; programs print it for a time that is none
			return when{}, usagef("%s %s is outside the years 1970 to 9999", flag, text)
		}
		return when{at: at}, nil
	}
	for _, form := range zoneless {
		if at, err := time.Parse(form, text); err == nil {
			return when{}, usagef("%s %s does not say in which zone; write %s, or +01:00 or the like in place of the Z", flag, quote(text), at.Format(time.RFC3339))
		}
	}
	d, err := parseDuration(text)
	if err != nil {
		return when{}, usagef("%s %s is neither an instant like 2026-01-02T15:04:05Z nor a time from now like +10m or -2h", flag, quote(text))
	}
	if text[0] != '+' && text[0] != '-' {
		return when{}, usagef("%s %s: write +%s for that long from now, or -%s for that long ago", flag, text, text, text)
	}
	return when{from: d, relative: true}, nil
}

// instant asks Redis for its now when that matters: ticks are due by that clock, not by this machine's.
func (t tool) instant(w when) (time.Time, error) {
	if !w.relative {
		return w.at, nil
	}
	now, err := t.in.Now(t.ctx)
	return now.Add(w.from).Truncate(time.Millisecond), err
}
