package cron

import (
	"fmt"
	"math/bits"
)

// fewTimes bounds the times of a day that are listed one by one.
const fewTimes = 8

// timeWords returns the words for the times of day.
func (c *calendar) timeWords() string {
	times := c.timesOfDay()
	step := stride(times)
	switch {
	case len(times) <= 3 || step == 0 && len(times) <= fewTimes:
		var parts []string
		for _, t := range times {
			parts = append(parts, clockTime(t))
		}
		return "at " + andList(parts)
	case step == 0:
		return c.fieldWords()
	case step < daySeconds && times[0] < step && daySeconds%step == 0 && len(times) == daySeconds/step:
		return "every " + durationWords(int64(step)*1000) + startWords(times[0], step)
	default:
		return fmt.Sprintf("every %s from %s to %s", durationWords(int64(step)*1000), clockTime(times[0]), clockTime(times[len(times)-1]))
	}
}

// wholeDay reports whether the words for the times imply each day.
func (c *calendar) wholeDay() bool {
	return bits.OnesCount64(c.hour) == 24
}

// startWords returns the words for the start of an interval in the day.
func startWords(first, step int) string {
	switch {
	case step == 3600 && first%60 == 0:
		return fmt.Sprintf(" at minute %d", first/60)
	case step == 3600:
		return fmt.Sprintf(" at minute %d and second %d", first/60, first%60)
	case step == 60 && first > 0:
		return fmt.Sprintf(" at second %d", first)
	case first == 0 && step < 3600:
		return ""
	default:
		return ", starting at " + clockTime(first)
	}
}

// fieldWords returns words field by field, for times without simpler words.
func (c *calendar) fieldWords() string {
	number := func(n int) string { return fmt.Sprint(n) }
	fields := []struct {
		noun   string
		values valueWords
	}{
		{"second", valueWords{c.second, 0, 59, number}},
		{"minute", valueWords{c.minute, 0, 59, number}},
		{"hour", valueWords{c.hour, 0, 23, func(n int) string { return fmt.Sprintf("%02d", n) }}},
	}
	if c.second == 1 { // as without a seconds field
		fields = fields[1:]
	}
	text := fields[0].values.leading(fields[0].noun)
	for i, f := range fields[1:] {
		switch {
		case !f.values.full():
			text += ", in " + f.values.inner(f.noun)
		case !fields[i].values.full(): // the field just named
			text += " of every " + f.noun
		}
	}
	return text
}

// leading returns the words for the finest field, seconds or minutes: "every 5 minutes", "at minutes 0, 20 and 50".
func (v valueWords) leading(noun string) string {
	if v.full() {
		return "every " + noun
	}
	values := v.all()
	if step := stride(values); step > 0 && 60%step == 0 && len(values) == 60/step {
		text := fmt.Sprintf("every %d %ss", step, noun)
		if values[0] > 0 {
			text += fmt.Sprintf(" from %s %d on", noun, values[0])
		}
		return text
	}
	if steps := v.steps(noun); steps != "" {
		return "at " + steps
	}
	return "at " + v.plural(noun)
}

// inner returns the words for a coarser field: "hours 09 to 16".
func (v valueWords) inner(noun string) string {
	if steps := v.steps(noun); steps != "" {
		return steps
	}
	return v.plural(noun)
}

// timesOfDay returns the matching seconds of a day.
func (c *calendar) timesOfDay() []int {
	var out []int
	for at, ok := c.nextInDay(0); ok; at, ok = c.nextInDay(at + 1) {
		out = append(out, at)
	}
	return out
}

// clockTime returns 09:30, with seconds if there are any.
func clockTime(sec int) string {
	if sec%60 == 0 {
		return fmt.Sprintf("%02d:%02d", sec/3600, sec/60%60)
	}
	return fmt.Sprintf("%02d:%02d:%02d", sec/3600, sec/60%60, sec%60)
}
