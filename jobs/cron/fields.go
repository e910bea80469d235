package cron

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/escapement/escapement/jobs/spec"
)

var descriptors = map[string]string{
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
	"@monthly":  "0 0 1 * *",
	"@weekly":   "0 0 * * 0",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@hourly":   "0 * * * *",
}

const descriptorList = "@yearly @annually @monthly @weekly @daily @midnight @hourly"

// fieldRule is the name and the values of a field.
type fieldRule struct {
	name      string
	low, high int
	hashHigh  int      // the largest value of H
	names     []string // of the values from low on; schedules have them in full or their first three letters, in any case
}

var (
	monthNames = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September",
		"October", "November", "December"}
	dayNames = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}

	fieldRules = [6]fieldRule{{"second", 0, 59, 59, nil}, {"minute", 0, 59, 59, nil}, {"hour", 0, 23, 23, nil},
		{"day of month", 1, 31, 28, nil}, {"month", 1, 12, 12, monthNames}, {"day of week", 0, 6, 6, dayNames}}
)

// The day fields and the month, among six.
const (
	domField   = 3
	monthField = 4
	dowField   = 5
)

// sunday is Sunday at the end of a week; 0 is Sunday too.
const sunday = 7

// size is the number of values.
func (r fieldRule) size() int { return r.high - r.low + 1 }

// element matches one member of a list: a star, a value or a range, with an optional step. Only text of this form reaches the
// parser, which would accept "*-5" as "*", and "," as a field without a value.
var element = regexp.MustCompile(`^(?:([*?])|([0-9]{1,4}|[A-Za-z]{3,9})(?:-([0-9]{1,4}|[A-Za-z]{3,9}))?)(?:/([0-9]{1,4}))?$`)

// nearestFromEnd is a form of other schedulers that does not exist here.
var nearestFromEnd = regexp.MustCompile(`(?i)^L-[0-9]{1,4}W$`)

// parseFields parses 5 or 6 fields to a schedule without text and zone. name decides the values of H.
func parseFields(name string, fields []string) (*Schedule, error) {
	first := 0
	switch len(fields) {
	case 5:
		first, fields = 1, append([]string{"0"}, fields...)
	case 6:
	default:
		return nil, fmt.Errorf("has %d fields; 5 are needed, or 6 with seconds first", len(fields))
	}
	if err := checkFields(name, fields); err != nil {
		return nil, err
	}
	plain := resolve(fields, name)
	cal, err := parseCalendar(plain)
	if err != nil {
		return nil, err
	}
	s := &Schedule{cal: cal, fixed: namesFixedTimes(fields[1:3])}
	if hasHash(fields) {
		s.resolved = strings.Join(plain[first:], " ")
	}
	if _, ok := s.cal.next(0); !ok {
		return nil, neverFires(s.resolved)
	}
	return s, nil
}

// parseCalendar parses six checked fields without H.
func parseCalendar(fields []string) (calendar, error) {
	var m monthDays
	dom, noDom, err := m.cut(fields[domField], domField)
	if err != nil {
		return calendar{}, err
	}
	dow, noDow, err := m.cut(fields[dowField], dowField)
	if err != nil {
		return calendar{}, err
	}
	spec, err := parseSpec(strings.Join([]string{
		fields[0], fields[1], fields[2], dom, fieldRules[monthField].numbers(fields[monthField]), fieldRules[dowField].numbers(dow),
	}, " "))
	if err != nil {
		return calendar{}, err
	}
	c := newCalendar(spec)
	if c.monthDays = m; noDom {
		c.dom = 0
	}
	if noDow {
		c.dow = 0
	}
	return c, nil
}

// namesFixedTimes reports whether minute and hour have neither a star nor an H with a step: fixed times, not an interval.
func namesFixedTimes(fields []string) bool {
	return !strings.ContainsAny(strings.Join(fields, ""), "*?") && !stepsHash(fields)
}

func neverFires(resolved string) error {
	const words = "never fires: there is no such day in the months given"
	if resolved == "" {
		return errors.New(words)
	}
	return fmt.Errorf("%s; with this job's name it means %q", words, spec.Clip(resolved))
}

// checkFields checks the six fields. Its error names all wrong fields on one line, for a longer message. The parser's own errors
// name no field.
func checkFields(name string, fields []string) error {
	var faults []string
	for i, f := range fields {
		if err := checkField(name, f, i); err != nil {
			faults = append(faults, fmt.Sprintf("%s %q: %v", fieldRules[i].name, spec.Clip(f), err))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(faults, "; "))
}

func checkField(name, field string, i int) (err error) {
	for e := range strings.SplitSeq(field, ",") {
		switch {
		case isHash(e):
			err = checkHash(name, e, i)
		case isMonthDay(e, i):
			err = new(monthDays).add(e, i)
		default:
			_, _, _, err = fieldRules[i].read(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read parses one element of a list: every step-th value of low to high.
func (r fieldRule) read(text string) (low, high, step int, err error) {
	part := element.FindStringSubmatch(text)
	switch {
	case text == "":
		return 0, 0, 0, errors.New("has an empty element in its list; remove the comma")
	case part == nil && r.high == 31 && nearestFromEnd.MatchString(text):
		return 0, 0, 0, fmt.Errorf("%q: there is no weekday nearest to a day before the last; write L-3, LW or 15W", spec.Clip(text))
	case part == nil:
		return 0, 0, 0, fmt.Errorf("%q is not a value, a range such as 1-5, or a step such as */5%s", spec.Clip(text), r.monthDayForms())
	}
	star, from, to, by := part[1], part[2], part[3], part[4]
	low, high, step = r.low, r.high, 1
	if star == "" {
		if low, high, err = r.span(from, to); err != nil {
			return 0, 0, 0, err
		}
		if to == "" && by != "" { // 5/15 is 5-59/15
			high = max(low, r.high)
		}
	}
	if by != "" {
		step, _ = strconv.Atoi(by) // at most 4 digits
	}
	switch {
	case step < 1:
		err = errors.New("step 0 is not a step; the least is 1")
	case step > r.size():
		err = fmt.Errorf("step %d is larger than the field, which has %d values; for long intervals use @every", step, r.size())
	}
	return low, high, step, err
}

// span parses a value, or a range; to is "" for a value.
func (r fieldRule) span(from, to string) (low, high int, err error) {
	if low, err = r.value(from); err != nil || to == "" {
		return low, low, err
	}
	if high, err = r.value(to); err != nil {
		return low, high, err
	}
	if r.week() && high == 0 && low > 0 && !isNumber(to) {
		high = sunday // FRI-SUN
	}
	if low > high {
		return low, high, fmt.Errorf("the range %s-%s is backwards; write its lower value first, or its two parts: %s", from, to, r.parts(low, high))
	}
	return low, high, nil
}

// parts returns what a range that goes over the end of the field stands for: 22-23,0-2.
func (r fieldRule) parts(low, high int) string {
	part := func(low, high int) string {
		if low == high {
			return strconv.Itoa(low)
		}
		return fmt.Sprintf("%d-%d", low, high)
	}
	if low > r.high { // Sunday as 7
		return part(r.low, high)
	}
	return part(low, r.high) + "," + part(r.low, high)
}

// value parses a number, a name, or its first three letters.
func (r fieldRule) value(text string) (int, error) {
	for i, name := range r.names {
		if strings.EqualFold(text, name[:3]) || strings.EqualFold(text, name) {
			return r.low + i, nil
		}
	}
	v, err := strconv.Atoi(text)
	switch {
	case err != nil && r.names == nil:
		return 0, fmt.Errorf("%q is not a number", spec.Clip(text))
	case err != nil:
		return 0, fmt.Errorf("%q is not a %s; the names are %s to %s, or in full", spec.Clip(text), r.name, r.short(0), r.short(len(r.names)-1))
	case v >= r.low && v <= r.top():
		return v, nil
	}
	return 0, fmt.Errorf("%d is outside %d to %d", v, r.low, r.top())
}

// top is the largest number that may be written.
func (r fieldRule) top() int {
	if r.week() {
		return sunday
	}
	return r.high
}

func isNumber(text string) bool {
	_, err := strconv.Atoi(text)
	return err == nil
}

// monthDayForms names the forms of isMonthDay.
func (r fieldRule) monthDayForms() string {
	switch {
	case r.week():
		return "; the last Friday of the month is 5L, the second one 5#2"
	case r.high == 31:
		return "; the last day of the month is L, its last weekday LW, the one nearest to the 15th 15W"
	}
	return ""
}

// short returns the name of a value in schedules: JAN.
func (r fieldRule) short(i int) string { return strings.ToUpper(r.names[i][:3]) }

// week reports whether the field is the day of week.
func (r fieldRule) week() bool { return len(r.names) == len(dayNames) }
