package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// Words returns the schedule in plain English: "at 09:30, on Monday to Friday, Europe/Berlin time".
//
// The words come from the values of the fields. Two schedules with the same words have the same ticks, except at a change of the
// clock: "0 * * * *" and "0 0-23 * * *" are both "every hour at minute 0", and only the first fires twice in the repeated hour.
// Of many dates of Except and Only the words have the first three and the number of the others.
func (s *Schedule) Words() string {
	zone := "UTC"
	if s.zone != time.UTC {
		zone = s.zone.String() + " time"
	}
	var parts []string
	if s.every > 0 {
		parts = append(parts, "every "+durationWords(s.every), "counted from 1970-01-01T00:00:00Z")
	} else {
		parts = append(append(parts, s.cal.timeWords()), s.cal.dateWords()...)
	}
	parts = append(parts, s.bounds.words()...)
	if s.every == 0 || s.cal.days != nil {
		parts = append(parts, zone)
	}
	text := strings.Join(parts, ", ")
	if s.resolved != "" {
		text += " (H taken from the job's name)"
	}
	return text
}

// durationWords returns "1 hour 30 minutes", and "hour" for a single unit.
func durationWords(ms int64) string {
	var parts []string
	for _, u := range []struct {
		name string
		ms   int64
	}{{"day", 86_400_000}, {"hour", 3_600_000}, {"minute", 60_000}, {"second", 1000}, {"millisecond", 1}} {
		n := ms / u.ms
		ms %= u.ms
		switch {
		case n == 1 && ms == 0 && len(parts) == 0:
			return u.name
		case n == 1:
			parts = append(parts, "1 "+u.name)
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, u.name))
		}
	}
	return strings.Join(parts, " ")
}

// valueWords is a field's set of values, for words.
type valueWords struct {
	set       uint64
	low, high int // the smallest and the largest value of the field
	name      func(int) string
}

func (v valueWords) full() bool { return v.size() == v.high-v.low+1 }

func (v valueWords) size() int { return bits.OnesCount64(v.set) }

// has is false beyond the bits.
func (v valueWords) has(n int) bool { return n >= 0 && n < 64 && v.set>>uint(n)&1 != 0 }

func (v valueWords) all() []int {
	var out []int
	for n := v.low; n <= v.high; n++ {
		if v.has(n) {
			out = append(out, n)
		}
	}
	return out
}

// list returns "1, 5 and 10 to 20".
func (v valueWords) list() string {
	var parts []string
	for n := v.low; n <= v.high; n++ {
		if !v.has(n) {
			continue
		}
		end := n
		for end < v.high && v.has(end+1) {
			end++
		}
		if end < n+2 { // two neighbours are not a range
			parts = append(parts, v.name(n))
			continue
		}
		parts = append(parts, v.name(n)+" to "+v.name(end))
		n = end
	}
	return andList(parts)
}

// stride returns the distance of equally spaced values, else 0.
func stride(values []int) int {
	if len(values) < 2 {
		return 0
	}
	step := values[1] - values[0]
	for i := 2; i < len(values); i++ {
		if values[i]-values[i-1] != step {
			return 0
		}
	}
	return step
}

// steps returns "every 2nd NOUN from 1 to 31", for at least four equally spaced values; else "".
func (v valueWords) steps(noun string) string {
	values := v.all()
	step := stride(values)
	if len(values) < 4 || step < 2 {
		return ""
	}
	return fmt.Sprintf("every %s %s from %s to %s", ordinal(step), noun, v.name(values[0]), v.name(values[len(values)-1]))
}

func andList(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

func ordinal(n int) string {
	suffix := "th"
	if n%100 < 11 || n%100 > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return strconv.Itoa(n) + suffix
}

// plural returns "minute 5", "minutes 0 and 20".
func (v valueWords) plural(noun string) string {
	if v.size() > 1 {
		noun += "s"
	}
	return noun + " " + v.list()
}
