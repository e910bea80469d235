package audit

import (
	"fmt"
	"strconv"
	"strings"
)

var descriptors = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// field is the set of values of one field.
type field struct {
	has  [60]bool
	star bool // of a day field: every day will do, so that the other one decides
}

// What the fields are called, their least and greatest values, and the names of values from the
// least on.
var fields = [6]struct {
	name   string
	lo, hi int
	words  []string
}{
	{"second", 0, 59, nil},
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of month", 1, 31, nil},
	{"month", 1, 12, strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")},
	{"day of week", 0, 6, strings.Fields("sun mon tue wed thu fri sat")},
}

// parseField reads a list of stars, values and ranges, each with an optional step.
func parseField(text string, i int) (field, error) {
	var f field
	for _, part := range strings.Split(text, ",") {
		reach, stepText, stepped := strings.Cut(part, "/")
		step, err := 1, error(nil)
		if stepped {
			step, err = strconv.Atoi(stepText)
		}
		if err != nil || step < 1 {
			return f, fmt.Errorf("%s %q: step %q is not a number above 0", fields[i].name, text, stepText)
		}
		lo, hi, err := parseReach(reach, i, stepped)
		if err != nil {
			return f, fmt.Errorf("%s %q: %w", fields[i].name, text, err)
		}
		f.star = f.star || (reach == "*" || reach == "?") && step == 1
		for v := lo; v <= hi; v += step {
			f.has[v] = true
		}
	}
	return f, nil
}

// parseReach reads what stands before the step: a star, a range, or a value, which with a step
// reaches to the end.
func parseReach(text string, i int, stepped bool) (lo, hi int, err error) {
	if text == "*" || text == "?" {
		return fields[i].lo, fields[i].hi, nil
	}
	a, b, ranged := strings.Cut(text, "-")
	if lo, err = parseValue(a, i); err != nil {
		return 0, 0, err
	}
	switch {
	case ranged:
		hi, err = parseValue(b, i)
	case stepped:
		hi = fields[i].hi
	default:
		hi = lo
	}
	if err == nil && hi < lo {
		err = fmt.Errorf("%q ends before it begins", text)
	}
	return lo, hi, err
}

func parseValue(text string, i int) (int, error) {
	for k, word := range fields[i].words {
		if strings.EqualFold(text, word) {
			return fields[i].lo + k, nil
		}
	}
	v, err := strconv.Atoi(text)
	if err != nil || v < fields[i].lo || v > fields[i].hi {
		return 0, fmt.Errorf("%q is not a value from %d to %d", text, fields[i].lo, fields[i].hi)
	}
	return v, nil
}
