package jobs

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"
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

// fieldRule is what a field is called and which values it has.
type fieldRule struct {
	name      string
	low, high int
	hashHigh  int      // the greatest value that H takes
	names     []string // of the values from low on; three letters of each will do
}

var (
	monthNames = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September",
		"October", "November", "December"}
	dayNames = []string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}

	fieldRules = [6]fieldRule{{"second", 0, 59, 59, nil}, {"minute", 0, 59, 59, nil}, {"hour", 0, 23, 23, nil},
		{"day of month", 1, 31, 28, nil}, {"month", 1, 12, 12, monthNames}, {"day of week", 0, 6, 6, dayNames}}
)

// size is the number of values.
func (r fieldRule) size() int { return r.high - r.low + 1 }

// element is one member of a list: a star, a value or a range, with an optional step.
// Only text of this form reaches the parser, which by itself reads "*-5" as "*", and
// takes "," for a field with no value at all.
var element = regexp.MustCompile(`^(?:[*?]|(?:[0-9]{1,4}|[A-Za-z]{3})(?:-(?:[0-9]{1,4}|[A-Za-z]{3}))?)(?:/[0-9]{1,4})?$`)

var parser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// parseFields reads 5 or 6 fields into a schedule that has no text and no zone yet. name
// stands behind H.
func parseFields(name string, fields []string) (*Schedule, error) {
	first := 0
	switch len(fields) {
	case 5:
		first, fields = 1, append([]string{"0"}, fields...)
	case 6:
	default:
		return nil, fmt.Errorf("has %d fields; 5 are needed, or 6 with seconds first", len(fields))
	}
	err := checkEach(fields, func(field string, i int) error { return checkForm(name, field, i) })
	if err != nil {
		return nil, err
	}
	plain := resolve(fields, name)
	spec, err := parseSpec(strings.Join(plain, " "))
	if err != nil {
		if named := checkEach(plain, checkAlone); named != nil {
			err = named
		}
		return nil, err
	}
	s := &Schedule{cal: newCalendar(spec), fixed: namesFixedTimes(fields[1:3])}
	if hasHash(fields) {
		s.resolved = strings.Join(plain[first:], " ")
	}
	if _, ok := s.cal.next(0); !ok {
		return nil, neverFires(s.resolved)
	}
	return s, nil
}

// namesFixedTimes tells fixed times from an interval: neither field, minute or hour, has a
// star or an H with a step.
func namesFixedTimes(fields []string) bool {
	return !strings.ContainsAny(strings.Join(fields, ""), "*?") && !stepsHash(fields)
}

func neverFires(resolved string) error {
	const words = "never fires: there is no such day in the months given"
	if resolved == "" {
		return errors.New(words)
	}
	return fmt.Errorf("%s; with this job's name it means %q", words, clip(resolved))
}

// checkEach applies a check to each field and names those at fault, all on one line: it
// stands inside a longer message.
func checkEach(fields []string, check func(field string, i int) error) error {
	var faults []string
	for i, f := range fields {
		if err := check(f, i); err != nil {
			faults = append(faults, fmt.Sprintf("%s %q: %v", fieldRules[i].name, clip(f), err))
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return errors.New(strings.Join(faults, "; "))
}

// checkForm checks all but the values, which the parser knows.
func checkForm(name, field string, i int) error {
	if field == "*" {
		return nil
	}
	for e := range strings.SplitSeq(field, ",") {
		if e == "" {
			return errors.New("has an empty place in its list; remove the comma")
		}
		if isHash(e) {
			if err := checkHash(name, e, i); err != nil {
				return err
			}
			continue
		}
		if !element.MatchString(e) {
			return fmt.Errorf("%q is not a value, a range such as 1-5, or a step such as */5", clip(e))
		}
		_, text, _ := strings.Cut(e, "/")
		if step, err := strconv.Atoi(text); err == nil && step > fieldRules[i].size() {
			return fmt.Errorf("step %d is larger than the field, which has %d values; for long intervals use @every",
				step, fieldRules[i].size())
		}
	}
	return nil
}

// checkAlone lets the parser read one field by itself: its errors name no field.
func checkAlone(field string, i int) error {
	alone := []string{"*", "*", "*", "*", "*", "*"}
	alone[i] = field
	_, err := parseSpec(strings.Join(alone, " "))
	if err != nil && i == len(fieldRules)-1 && namesSeven.MatchString(field) {
		return fmt.Errorf("%w; Sunday is 0 here, not 7", err)
	}
	return err
}

// namesSeven finds a 7 that is no step: other crons take it for Sunday.
var namesSeven = regexp.MustCompile(`(^|[,-])7\b`)

// parseSpec calls the parser. Only checked text comes here; should the parser panic all
// the same, that is an error of the schedule and not the end of the program.
func parseSpec(text string) (spec *cron.SpecSchedule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser cannot read it: %v", p)
		}
	}()
	s, err := parser.Parse(text)
	if err != nil {
		return nil, err
	}
	spec, ok := s.(*cron.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("the parser answered a %T", s)
	}
	return spec, nil
}
