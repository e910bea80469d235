package locking

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxName   = 512 // bytes of a lock's name
	maxHolder = 128 // bytes of Options.Holder

	// maxTTL keeps milliseconds and deadlines far below overflow.
	maxTTL = 30 * 24 * time.Hour
)

// checkName returns nil or an *InputError.
func checkName(name string) error {
	switch {
	case name == "":
		return &InputError{Field: "name", Why: "is empty; use 1 to 512 bytes of printable UTF-8"}
	case len(name) > maxName:
		return &InputError{Lock: strings.ToValidUTF8(name[:32], "") + "...", Field: "name",
			Why: fmt.Sprintf("has %d bytes; use at most %d", len(name), maxName)}
	case !printable(name):
		return &InputError{Lock: name, Field: "name", Why: "is not printable UTF-8; use text without control characters"}
	}
	return nil
}

// check returns an *InputError for each fault of o and name, joined.
func (o Options) check(name string, margin time.Duration) error {
	errs := []error{checkName(name)}
	refuse := func(field, format string, args ...any) {
		errs = append(errs, &InputError{Lock: shortened(name), Field: "Options." + field, Why: fmt.Sprintf(format, args...)})
	}
	if o.TTL < 3*margin {
		refuse("TTL", "is %s, less than three times the margin %s; use at least %s", o.TTL, margin, 3*margin)
	}
	if o.TTL > maxTTL {
		refuse("TTL", "is %s; use at most %s and let it be renewed", o.TTL, maxTTL)
	}
	if o.Wait < 0 {
		refuse("Wait", "is %s, which is negative; use 0 to try once", o.Wait)
	}
	if o.Delay < 0 || o.Delay > maxTTL {
		refuse("Delay", "is %s; use 0 to %s", o.Delay, maxTTL)
	}
	if o.After < 0 || o.After >= 1<<53 {
		refuse("After", "is %d; a token lies between 1 and 2^53", o.After)
	}
	if len(o.Holder) > maxHolder || !printable(o.Holder) {
		refuse("Holder", "must be printable UTF-8 of at most %d bytes", maxHolder)
	}
	return errors.Join(errs...)
}

func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

func shortened(name string) string {
	if len(name) > maxName {
		return strings.ToValidUTF8(name[:32], "") + "..."
	}
	return name
}
