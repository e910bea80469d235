package cron

import "fmt"

// dateWords returns the words for the days; none when the words for the times imply each day.
func (c *calendar) dateWords() []string {
	dates := valueWords{c.dom, 1, 31, func(n int) string { return fmt.Sprint(n) }}
	days := valueWords{weekFromMonday(c.dow), 1, 7, func(n int) string { return dayNames[n%7] }}
	months := valueWords{c.month, 1, 12, func(n int) string { return monthNames[n-1] }}
	in := ""
	if !months.full() {
		in = "in " + months.list()
		if steps := months.steps("month"); steps != "" {
			in = "in " + steps
		}
	}
	var out []string
	switch {
	case c.eitherDay:
		out = append(out, c.domWords(dates, months)+" or "+c.dowWords(days)+" (either is enough)")
	case !dates.full() && dates.size() == 1 && months.size() <= 3 && c.monthDays == (monthDays{}):
		return append(out, fewDates(dates.all()[0], months))
	case !dates.full():
		out = append(out, c.domWords(dates, months))
	case !days.full():
		out = append(out, c.dowWords(days))
	case in == "" && c.wholeDay():
		return nil
	default:
		out = append(out, "every day")
	}
	if in != "" {
		out = append(out, in)
	}
	return out
}

// domWords is "on days 1 and 15 and the last day of the month".
func (c *calendar) domWords(dates, months valueWords) string {
	more := c.monthDays.domWords()
	if len(more) == 0 || dates.full() {
		return dayOfMonthWords(dates, months)
	}
	n, least := dates.size()+len(more), shortest(months)
	if dates.size() > 0 {
		more = append([]string{dates.plural("day")}, more...)
	}
	return "on " + andList(more) + " of the month" + whereItIs(n, c.monthDays.domLacking(least) || dates.set>>uint(least+1) != 0)
}

// whereItIs is " (where the month has it)" for n days of which some month lacks one.
func whereItIs(n int, lacking bool) string {
	switch {
	case !lacking:
		return ""
	case n == 1:
		return " (where the month has it)"
	default:
		return " (where the month has them)"
	}
}

// dowWords is "on Monday and the 2nd Friday of the month".
func (c *calendar) dowWords(days valueWords) string {
	more := c.monthDays.dowWords()
	n := len(more)
	switch {
	case n == 0 || days.full():
		return "on " + days.list()
	case days.size() > 0:
		more = append([]string{days.list()}, more...)
	}
	return "on " + andList(more) + " of the month" + whereItIs(n, c.monthDays.dowLacking())
}

// fewDates is "on 1 January and 1 July". A month that never has the day is left out.
func fewDates(date int, months valueWords) string {
	var parts []string
	for _, m := range months.all() {
		if date <= longest[m-1] {
			parts = append(parts, fmt.Sprintf("%d %s", date, months.name(m)))
		}
	}
	text := "on " + andList(parts)
	switch {
	case date != 29 || !months.has(2):
		return text
	case len(parts) == 1:
		return text + " (in leap years only)"
	default:
		return text + " (29 February in leap years only)"
	}
}

// longest is how many days the months have, in a leap year.
var longest = [12]int{31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// dayOfMonthWords is "on days 1 and 15 of the month".
func dayOfMonthWords(dates, months valueWords) string {
	text := "on " + dates.plural("day") + " of the month"
	if steps := dates.steps("day"); steps != "" {
		text = "on " + steps + " of the month"
	}
	return text + whereItIs(dates.size(), !dates.full() && dates.set>>uint(shortest(months)+1) != 0)
}

// shortest is the least number of days that one of the months has in some year.
func shortest(months valueWords) int {
	if months.has(2) {
		return 28
	}
	least := 31
	for _, m := range months.all() {
		least = min(least, longest[m-1])
	}
	return least
}

// weekFromMonday moves Sunday from 0 to 7.
func weekFromMonday(dow uint64) uint64 { return dow&^1 | dow&1<<7 }
