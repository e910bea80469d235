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

// fieldRule is what a field is called and how many values it has; the parser knows the
// values themselves.
type fieldRule struct {
	name string
	size int
}

var fieldRules = [6]fieldRule{{"second", 60}, {"minute", 60}, {"hour", 24},
	{"day of month", 31}, {"month", 12}, {"day of week", 7}}

// element is one member of a list: a star, a value or a range, with an optional step.
// Only text of this form reaches the parser, which by itself reads "*-5" as "*", and
// takes "," for a field with no value at all.
var element = regexp.MustCompile(`^(?:[*?]|(?:[0-9]{1,4}|[A-Za-z]{3})(?:-(?:[0-9]{1,4}|[A-Za-z]{3}))?)(?:/[0-9]{1,4})?$`)

var parser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// parseFields reads 5 or 6 fields. fixed is true when neither minute nor hour has a star.
func parseFields(fields []string) (cal calendar, fixed bool, err error) {
	switch len(fields) {
	case 5:
		fields = append([]string{"0"}, fields...)
	case 6:
	default:
		return cal, false, fmt.Errorf("has %d fields; 5 are needed, or 6 with seconds first", len(fields))
	}
	if err := checkEach(fields, checkForm); err != nil {
		return cal, false, err
	}
	spec, err := parseSpec(strings.Join(fields, " "))
	if err != nil {
		if named := checkEach(fields, checkAlone); named != nil {
			err = named
		}
		return cal, false, err
	}
	cal = newCalendar(spec)
	if _, ok := cal.next(0); !ok {
		return cal, false, errors.New("never fires: there is no such day in the months given")
	}
	return cal, !strings.ContainsAny(fields[1]+fields[2], "*?"), nil
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
func checkForm(field string, i int) error {
	if field == "*" {
		return nil
	}
	for e := range strings.SplitSeq(field, ",") {
		if e == "" {
			return errors.New("has an empty place in its list; remove the comma")
		}
		if e[0] == 'H' || e[0] == 'h' {
			return errors.New("H is not there yet; write a number")
		}
		if !element.MatchString(e) {
			return fmt.Errorf("%q is not a value, a range such as 1-5, or a step such as */5", clip(e))
		}
		_, text, _ := strings.Cut(e, "/")
		if step, err := strconv.Atoi(text); err == nil && step > fieldRules[i].size {
			return fmt.Errorf("step %d is larger than the field, which has %d values; for long intervals use @every",
				step, fieldRules[i].size)
		}
	}
	return nil
}

// checkAlone lets the parser read one field by itself: its errors name no field.
func checkAlone(field string, i int) error {
	alone := []string{"*", "*", "*", "*", "*", "*"}
	alone[i] = field
	_, err := parseSpec(strings.Join(alone, " "))
	return err
}

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
