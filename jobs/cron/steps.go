package cron

import (
	"errors"
	"fmt"
	"strings"

	"github.com/escapement/escapement/jobs/spec"
)

// CheckSteps returns an error that names each step of the schedule which never steps, such as */60 in the minutes, and what to write
// instead. Parse accepts such a step, because stored schedules have it; jobs.Job.Validate refuses it.
func (s *Schedule) CheckSteps() error {
	fields := strings.Fields(s.text)
	if s.every > 0 || strings.HasPrefix(s.text, "@") {
		return nil
	}
	first := len(fieldRules) - len(fields)
	var faults []string
	for i, field := range fields {
		rule := fieldRules[first+i]
		for e := range strings.SplitSeq(field, ",") {
			if step, instead := rule.idleStep(e, first+i); instead != "" {
				faults = append(faults, fmt.Sprintf("%s %q: step %d never steps, because the values end before; write %s instead", rule.name, spec.Clip(e), step, instead))
			}
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return inSchedule(s.text, errors.New(strings.Join(faults, "; ")))
}

// idleStep returns the step of an element of field i that has one value only, and what to write instead; "" for another element. An H
// with a step has several values for some names, unless its step is as large as its range.
func (r fieldRule) idleStep(text string, i int) (step int, instead string) {
	element, _, stepped := strings.Cut(text, "/")
	switch {
	case !stepped:
		return 0, ""
	case isHash(text):
		if h, err := readHash(text, i); err == nil && h.step == h.high-h.low+1 && h.step > 1 {
			return h.step, element
		}
		return 0, ""
	}
	low, high, step, err := r.read(text)
	if err != nil || low+step <= high {
		return 0, ""
	}
	return step, fmt.Sprint(low)
}
