package cron

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
	"github.com/escapement/escapement/jobs/spec"
)

// hashForm matches a list element with H: alone, over a range, in steps, or both.
var hashForm = regexp.MustCompile(`^[Hh](?:\(([0-9]{1,4}|[A-Za-z]{3,9})-([0-9]{1,4}|[A-Za-z]{3,9})\))?(?:/([0-9]{1,4}))?$`)

// hashElement is an H before the name is known: one value of low to high, or with a step every step-th of them.
type hashElement struct {
	low, high int
	step      int // 0: none
}

// isHash reports whether an element is an H. No name of a month or day begins with one.
func isHash(element string) bool {
	return strings.HasPrefix(element, "H") || strings.HasPrefix(element, "h")
}

// hasHash reports whether the fields have an H.
func hasHash(fields []string) bool { return anyElement(fields, isHash) }

// stepsHash reports whether the fields have an H with a step.
func stepsHash(fields []string) bool {
	return anyElement(fields, func(e string) bool { return isHash(e) && strings.Contains(e, "/") })
}

func anyElement(fields []string, is func(string) bool) bool {
	for _, f := range fields {
		for e := range strings.SplitSeq(f, ",") {
			if is(e) {
				return true
			}
		}
	}
	return false
}

func checkHash(name, element string, i int) error {
	if _, err := readHash(element, i); err != nil {
		return err
	}
	if name == "" {
		return errors.New("H needs the job's name, which decides its value")
	}
	return nil
}

// readHash parses an H of field i.
func readHash(element string, i int) (hashElement, error) {
	rule := fieldRules[i]
	h := hashElement{low: rule.low, high: rule.hashHigh}
	part := hashForm.FindStringSubmatch(element)
	if part == nil {
		return h, fmt.Errorf("%q is not H, H/15, H(0-29) or H(0-29)/10", spec.Clip(element))
	}
	if part[1] != "" {
		var err error
		if h.low, err = rule.hashValue(part[1]); err != nil {
			return h, err
		}
		if h.high, err = rule.hashValue(part[2]); err != nil {
			return h, err
		}
		if h.low > h.high {
			return h, fmt.Errorf("%q: the range is backwards; write its lower value first", spec.Clip(element))
		}
	}
	if part[3] != "" {
		h.step, _ = strconv.Atoi(part[3]) // at most 4 digits
		if size := h.high - h.low + 1; h.step < 1 || h.step > size {
			return h, fmt.Errorf("%q: step %d is outside 1 to %d, the number of values", spec.Clip(element), h.step, size)
		}
	}
	return h, nil
}

// hashValue parses an end of H's range.
func (r fieldRule) hashValue(text string) (int, error) {
	v, err := r.value(text)
	if err == nil && v > r.hashHigh {
		note := ""
		switch {
		case r.week():
			note = "; write 0 for Sunday"
		case r.hashHigh < r.high:
			note = ", the days that every month has"
		}
		return 0, fmt.Errorf("%d in H is outside %d to %d%s", v, r.low, r.hashHigh, note)
	}
	return v, err
}

// text returns the element with its H resolved.
func (h hashElement) text(hash uint64) string {
	if h.step == 0 {
		return strconv.Itoa(h.low + int(hash%uint64(h.high-h.low+1)))
	}
	return fmt.Sprintf("%d-%d/%d", h.low+int(hash%uint64(h.step)), h.high, h.step)
}

// resolve replaces each H of the six fields, which have been checked.
func resolve(fields []string, name string) []string {
	if !hasHash(fields) {
		return fields
	}
	out := make([]string, len(fields))
	for i, field := range fields {
		elements := strings.Split(field, ",")
		for k, e := range elements {
			if h, err := readHash(e, i); isHash(e) && err == nil {
				elements[k] = h.text(fieldHash(name, i))
			}
		}
		out[i] = strings.Join(elements, ",")
	}
	return out
}

// fieldHash returns the number for an H. It must never change, because stored schedules depend on it. Fields count from the
// seconds, 0, whether these are written or not.
func fieldHash(name string, field int) uint64 {
	return xxhash.Sum64String(name + "\x00" + strconv.Itoa(field))
}
