package cron

import (
	"math/bits"
	"time"

	robfig "github.com/robfig/cron/v3"
)

const daySeconds = 86400

// searchDays bounds the search of next and prev: the rarest day, the fifth Monday of February, is at most forty years away (2072 to
// 2112).
const searchDays = 41 * 366

// calendar is a set of wall-clock seconds, as bit sets of its fields. They count from 1970-01-01T00:00:00 on a clock without a
// zone.
type calendar struct {
	second, minute, hour, dom, month, dow uint64
	eitherDay                             bool // both day fields are restricted: one is enough
	monthDays                             monthDays
	days                                  daySet // of except and only
}

// starBit is the parser's mark of a plain star.
const starBit = 1 << 63

func newCalendar(s *robfig.SpecSchedule) calendar {
	return calendar{
		second: s.Second &^ starBit, minute: s.Minute &^ starBit, hour: s.Hour &^ starBit,
		dom: s.Dom &^ starBit, month: s.Month &^ starBit, dow: s.Dow &^ starBit,
		eitherDay: s.Dom&starBit == 0 && s.Dow&starBit == 0,
	}
}

// next returns the first matching second at or after wall; false when there is none.
func (c *calendar) next(wall int64) (int64, bool) {
	day := floorDiv(wall, daySeconds)
	if c.matchesDay(day) {
		if s, ok := c.nextInDay(int(wall - day*daySeconds)); ok {
			return day*daySeconds + int64(s), true
		}
	}
	end := day
	if c.days != nil {
		_, last := c.days.ends()
		end = max(day, last)
	}
	day, ok := c.nextDay(day+1, end+searchDays)
	if !ok {
		return 0, false
	}
	s, ok := c.nextInDay(0)
	return day*daySeconds + int64(s), ok
}

// prev returns the last matching second at or before wall; false when there is none.
func (c *calendar) prev(wall int64) (int64, bool) {
	day := floorDiv(wall, daySeconds)
	if end := int(wall-day*daySeconds) + 1; c.matchesDay(day) && c.below(end) > 0 {
		return day*daySeconds + int64(c.lastBelow(end)), true
	}
	end := day
	if c.days != nil {
		first, _ := c.days.ends()
		end = min(day, first)
	}
	day, ok := c.prevDay(day-1, end-searchDays)
	if !ok {
		return 0, false
	}
	return day*daySeconds + int64(c.lastBelow(daySeconds)), true
}

// nextInDay returns the first matching second of a day at or after sec, 0 to 86399.
func (c *calendar) nextInDay(sec int) (int, bool) {
	h, m, s := sec/3600, sec/60%60, sec%60
	if hh := nextBit(c.hour, h); hh != h {
		h, m, s = hh, 0, 0
	}
	mm := nextBit(c.minute, m)
	if mm != m {
		s = 0
	}
	ss := nextBit(c.second, s)
	if ss < 0 {
		mm, ss = nextBit(c.minute, m+1), nextBit(c.second, 0)
	}
	if mm < 0 {
		h, mm, ss = nextBit(c.hour, h+1), nextBit(c.minute, 0), nextBit(c.second, 0)
	}
	return h*3600 + mm*60 + ss, h >= 0 && mm >= 0 && ss >= 0
}

// nextDay returns the first matching day from day on, before end; days since 1970.
func (c *calendar) nextDay(day, end int64) (int64, bool) {
	for day < end {
		span, ok := c.days.next(day)
		if !ok {
			return 0, false
		}
		if span.first > day {
			day = span.first
			continue
		}
		y, m, d := civil(day)
		if c.month>>uint(m)&1 == 0 {
			day = time.Date(y, m+1, 1, 0, 0, 0, 0, time.UTC).Unix() / daySeconds
			continue
		}
		if c.matchesDate(y, m, d, weekday(day)) {
			return day, true
		}
		day++
	}
	return 0, false
}

// prevDay returns the last matching day from day back, after end; days since 1970.
func (c *calendar) prevDay(day, end int64) (int64, bool) {
	for day > end {
		span, ok := c.days.prev(day)
		if !ok {
			return 0, false
		}
		if span.last < day {
			day = span.last
			continue
		}
		y, m, d := civil(day)
		if c.month>>uint(m)&1 == 0 {
			day -= int64(d)
			continue
		}
		if c.matchesDate(y, m, d, weekday(day)) {
			return day, true
		}
		day--
	}
	return 0, false
}

func (c *calendar) matchesDay(day int64) bool {
	if !c.days.has(day) {
		return false
	}
	y, m, d := civil(day)
	return c.month>>uint(m)&1 != 0 && c.matchesDate(y, m, d, weekday(day))
}

func (c *calendar) matchesDate(y int, m time.Month, d, weekday int) bool {
	dom := c.dom>>uint(d)&1 != 0 || c.monthDays.matchesDom(y, m, d, weekday)
	dow := c.dow>>uint(weekday)&1 != 0 || c.monthDays.matchesDow(y, m, d, weekday)
	if c.eitherDay {
		return dom || dow
	}
	return dom && dow
}

// count returns how many matching seconds lie from the first bound up to the second, and
// the last of them.
func (c *calendar) count(from, before int64) (n int, last int64) {
	if from >= before {
		return 0, 0
	}
	first, end := floorDiv(from, daySeconds), floorDiv(before-1, daySeconds)
	for day, ok := c.nextDay(first, end+1); ok; day, ok = c.nextDay(day+1, end+1) {
		lo, hi := max(from-day*daySeconds, 0), min(before-day*daySeconds, daySeconds)
		if k := c.below(int(hi)) - c.below(int(lo)); k > 0 {
			n += k
			last = day*daySeconds + int64(c.lastBelow(int(hi)))
		}
	}
	return n, last
}

// below counts the matching seconds of a day before sec, 0 to 86400.
func (c *calendar) below(sec int) int {
	h, m, s := sec/3600, sec/60%60, sec%60
	seconds := bits.OnesCount64(c.second)
	n := bits.OnesCount64(c.hour&lowBits(h)) * bits.OnesCount64(c.minute) * seconds
	if c.hour>>uint(h)&1 == 0 {
		return n
	}
	n += bits.OnesCount64(c.minute&lowBits(m)) * seconds
	if c.minute>>uint(m)&1 == 0 {
		return n
	}
	return n + bits.OnesCount64(c.second&lowBits(s))
}

// lastBelow returns the last matching second of a day before sec; there must be one.
func (c *calendar) lastBelow(sec int) int {
	k, at := c.below(sec), -1
	for step := 1 << 16; step > 0; step >>= 1 {
		if at+step < sec && c.below(at+step) < k {
			at += step
		}
	}
	return at
}

func lowBits(n int) uint64 { return 1<<uint(n) - 1 }

// nextBit returns the lowest set bit at or above from, -1 when there is none. A negative
// from finds nothing.
func nextBit(set uint64, from int) int {
	if from < 0 || set>>uint(from) == 0 {
		return -1
	}
	return from + bits.TrailingZeros64(set>>uint(from))
}

func civil(day int64) (int, time.Month, int) {
	return time.Unix(day*daySeconds, 0).UTC().Date()
}

// weekday counts from Sunday, 0; the first of January 1970 was a Thursday.
func weekday(day int64) int {
	return int(day + 4 - floorDiv(day+4, 7)*7)
}
