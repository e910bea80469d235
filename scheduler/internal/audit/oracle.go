package audit

import (
	"fmt"
	"slices"
	"strings"
	"time"

	_ "time/tzdata" // the oracle knows the zones also where the system has none

	"github.com/escapement/escapement/jobs"
)

// Schedule says which ticks are due.
type Schedule interface {
	// Ticks returns the ticks from one instant up to another, which is not in it, in order.
	Ticks(from, until time.Time) []time.Time
}

// ScheduleOf is the schedule of a job's definition. What an H stands for is taken from package jobs.
func ScheduleOf(d jobs.Definition) (Schedule, error) {
	hashed := func(field string) bool { return strings.HasPrefix(field, "H") || strings.Contains(field, ",H") }
	if !slices.ContainsFunc(strings.Fields(d.Schedule), hashed) {
		return Cron(d.Schedule, d.TimeZone)
	}
	parsed, err := jobs.ParseScheduleFor(d.Name, d.Schedule, d.TimeZone)
	if err != nil {
		return nil, err
	}
	s, err := Cron(parsed.Resolved(), "")
	if c, ok := s.(*cron); ok {
		c.fixed = parsed.FixedTimes()
	}
	return s, err
}

// Cron reads 5 or 6 fields, a descriptor or "@every d", with an optional CRON_TZ= or TZ= prefix;
// zone may be empty, which is UTC. It is meant for schedules that the program under test accepts
// and does not look for every mistake that a person can make.
func Cron(expr, zone string) (Schedule, error) {
	words := strings.Fields(expr)
	for _, key := range []string{"CRON_TZ=", "TZ="} {
		if len(words) > 0 && strings.HasPrefix(words[0], key) {
			zone, words = strings.TrimPrefix(words[0], key), words[1:]
			break
		}
	}
	if len(words) == 2 && words[0] == "@every" {
		d, err := time.ParseDuration(words[1])
		if err != nil {
			return nil, fmt.Errorf("oracle: schedule %q: %w; write a duration such as 90s", expr, err)
		}
		return Every(d)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("oracle: schedule %q: %w; write a zone such as Europe/Berlin", expr, err)
	}
	if len(words) == 1 && descriptors[words[0]] != "" {
		words = strings.Fields(descriptors[words[0]])
	}
	if len(words) == 5 {
		words = append([]string{"0"}, words...)
	}
	if len(words) != 6 {
		return nil, fmt.Errorf("oracle: schedule %q has %d fields; write 5, or 6 with seconds first", expr, len(words))
	}
	c := cron{zone: loc}
	for i, word := range words {
		if c.fields[i], err = parseField(word, i); err != nil {
			return nil, fmt.Errorf("oracle: schedule %q: %w", expr, err)
		}
	}
	// A star with a step is a star for the clock; for the two day fields it is a choice of days.
	c.fixed = !strings.ContainsAny(words[1]+words[2], "*?")
	return &c, nil
}

// cron is six sets of values and the zone whose wall clock they are about.
type cron struct {
	fields [6]field // second minute hour day month weekday
	zone   *time.Location
	fixed  bool // names times of day; else it fires whenever the wall clock matches
}

// Ticks walks through every second. A wall second is counted on a clock that is never set. A fixed
// time is due at the first second at which the wall clock, at its highest so far, has come to
// it: after a gap all that lay in the gap is due at once, and the repeated hour brings nothing new.
func (c *cron) Ticks(from, until time.Time) []time.Time {
	first := from.Unix()
	if from.Nanosecond() > 0 {
		first++
	}
	high := int64(0)
	if c.fixed {
		high = c.highest(first - 1)
	}
	var out []time.Time
	var today day
	for sec := first; time.Unix(sec, 0).Before(until); sec++ {
		wall, due := c.wall(sec), false
		if !c.fixed {
			due = c.matches(wall, &today)
		}
		for ; c.fixed && high < wall; high++ {
			due = due || c.matches(high+1, &today)
		}
		if due {
			out = append(out, time.Unix(sec, 0).UTC())
		}
	}
	return out
}

func (c *cron) wall(sec int64) int64 {
	if c.zone == time.UTC {
		return sec
	}
	_, offset := time.Unix(sec, 0).In(c.zone).Zone()
	return sec + int64(offset)
}

// highest is how far the wall clock has ever come up to a second. Clocks are set back by a day at
// most, so 30 hours tell; and if it was right at each quarter of an hour in them it was never set.
func (c *cron) highest(sec int64) int64 {
	const lead, quarter = 30 * 3600, 900
	now := c.wall(sec)
	set := false
	for back := int64(0); back <= lead; back += quarter {
		set = set || c.wall(sec-back) != now-back
	}
	for back := int64(0); set && back <= lead; back++ {
		now = max(now, c.wall(sec-back))
	}
	return now
}

// day remembers whether the calendar matches the day walked through, which is the same for all
// of its seconds.
type day struct {
	number  int64
	known   bool
	matches bool
}

func (c *cron) matches(wall int64, d *day) bool {
	number, second := floorDiv(wall, 86400)
	if !d.known || d.number != number {
		*d = day{number: number, known: true, matches: c.matchesDay(time.Unix(wall, 0).UTC())}
	}
	return d.matches && c.fields[0].has[second%60] && c.fields[1].has[second/60%60] && c.fields[2].has[second/3600]
}

// matchesDay takes a wall clock. When both day fields are restricted, one of them is enough.
func (c *cron) matchesDay(t time.Time) bool {
	date, weekday := c.fields[3], c.fields[5]
	if !c.fields[4].has[t.Month()] {
		return false
	}
	if date.star || weekday.star {
		return date.has[t.Day()] && weekday.has[t.Weekday()]
	}
	return date.has[t.Day()] || weekday.has[t.Weekday()]
}

// Every is the instants that are multiples of d since 1970; d is a whole number of milliseconds
// and 100 ms or more.
func Every(d time.Duration) (Schedule, error) {
	if d < 100*time.Millisecond || d%time.Millisecond != 0 {
		return nil, fmt.Errorf("oracle: every %v: not a whole number of milliseconds, 100 or more", d)
	}
	return &every{d.Milliseconds()}, nil
}

// every is an interval. Like cron it goes by reference: each parsed one is a schedule of its own.
type every struct{ ms int64 }

// Ticks goes from the last multiple at or before from in steps of the interval.
func (e *every) Ticks(from, until time.Time) []time.Time {
	k, _ := floorDiv(from.UnixMilli(), e.ms)
	var out []time.Time
	for tick := instant(k * e.ms); tick.Before(until); tick = tick.Add(time.Duration(e.ms) * time.Millisecond) {
		if !tick.Before(from) {
			out = append(out, tick)
		}
	}
	return out
}

// floorDiv rounds towards minus infinity; the rest is never negative.
func floorDiv(a, b int64) (quotient, rest int64) {
	quotient, rest = a/b, a%b
	if rest < 0 {
		quotient, rest = quotient-1, rest+b
	}
	return quotient, rest
}
