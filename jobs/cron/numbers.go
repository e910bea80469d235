package cron

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	robfig "github.com/robfig/cron/v3"
)

var parser = robfig.NewParser(robfig.Second | robfig.Minute | robfig.Hour | robfig.Dom | robfig.Month | robfig.Dow)

// numbers rewrites a checked field for the parser, which accepts the first three letters of names only, and Sunday as 0 only: an element
// with a name becomes numbers, an element up to 7 the list of its values. FRI-SUN is 5,6,0.
func (r fieldRule) numbers(field string) string {
	var out []string
	for e := range strings.SplitSeq(field, ",") {
		low, high, step, err := r.read(e)
		switch {
		case err == nil && r.week() && high == sunday:
			for v := low; v <= high; v += step {
				out = append(out, strconv.Itoa(v%sunday))
			}
		case err == nil && strings.ContainsFunc(e, unicode.IsLetter):
			out = append(out, fmt.Sprintf("%d-%d/%d", low, high, step))
		default:
			out = append(out, e)
		}
	}
	return strings.Join(out, ",")
}

// parseSpec calls the parser with checked text. A panic of the parser becomes an error.
func parseSpec(text string) (spec *robfig.SpecSchedule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the parser cannot read it: %v", p)
		}
	}()
	s, err := parser.Parse(text)
	if err != nil {
		return nil, err
	}
	spec, ok := s.(*robfig.SpecSchedule)
	if !ok {
		return nil, fmt.Errorf("the parser answered a %T", s)
	}
	return spec, nil
}
