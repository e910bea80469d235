package spec

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// NameForm describes a valid name, after the fault of an invalid one.
const NameForm = "use 1 to 128 letters, digits and . _ : / -, the first a letter or digit"

var namePattern = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/-]{0,127}$`)

// IsName reports whether a text can name a job, a group, a guard or a handler.
func IsName(text string) bool { return namePattern.MatchString(text) }

var (
	// dayForm matches a duration with days of 24 hours in front.
	dayForm = regexp.MustCompile(`^([+-]?)([0-9]{1,6})d((?:[0-9.].*)?)$`)
	// longForm matches a duration that only its size can make wrong.
	longForm = regexp.MustCompile(`^[+-]?([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h|d))+$`)
)

// ParseDuration parses a duration in the form of every setting: Go's, with days of 24 hours in
// front or alone, as in 90s, 2d and 1d12h. The error contains the correct form.
func ParseDuration(text string) (time.Duration, error) {
	plain := text
	if m := dayForm.FindStringSubmatch(text); m != nil {
		days, _ := strconv.Atoi(m[2]) // at most 6 digits
		plain = m[1] + strconv.Itoa(24*days) + "h" + m[3]
	}
	d, err := time.ParseDuration(plain)
	if err != nil {
		return 0, durationFault(text)
	}
	return d, nil
}

func durationFault(text string) error {
	if n, err := strconv.Atoi(text); err == nil {
		meant := text + "s"
		if d, err := ParseDuration(text + "ms"); err == nil && n%1000 == 0 { // a number of milliseconds
			meant = FormatDuration(d)
		}
		return fmt.Errorf("%s has no unit; did you mean %s", Clip(text), Clip(meant))
	}
	if longForm.MatchString(text) {
		return fmt.Errorf("%s is too long; the longest duration is %dh", Clip(text), int(time.Duration(math.MaxInt64).Hours()))
	}
	if squeezed := strings.Join(strings.Fields(strings.ToLower(text)), ""); squeezed != text {
		if _, err := ParseDuration(squeezed); err == nil {
			return fmt.Errorf("%q is not a duration; did you mean %s", Clip(text), squeezed)
		}
	}
	return fmt.Errorf("%q is not a duration; write a number and a unit, like 500ms, 15s, 2m or 2d", Clip(text))
}

// FormatDuration writes 15s, 1m or 168h, where Duration.String has 1m0s and 168h0m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// TimeLayout is how instants are written wherever people and programs read them: RFC 3339 with
// milliseconds, Z for UTC.
const TimeLayout = "2006-01-02T15:04:05.000Z07:00"

// instantForm is how settings have instants: in UTC, with milliseconds where they are not 0.
const instantForm = "2006-01-02T15:04:05.999Z07:00"

func parseInstant(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%q is not %s", Clip(text), Instant)
	}
	return t.UTC(), nil
}

// checkWhole refuses a duration that cannot be stored.
func checkWhole(d time.Duration) error {
	switch {
	case d < 0:
		return fmt.Errorf("%s is negative; use 0 or more", FormatDuration(d))
	case d%time.Millisecond != 0:
		return fmt.Errorf("%s is not a whole number of milliseconds", FormatDuration(d))
	}
	return nil
}

var (
	// userInfo is the part of a URL that may hold a password. Greedy, because an unescaped password
	// may itself hold "@", and without "//", which may be missing.
	userInfo = regexp.MustCompile(`(?s):.*@`)
	// inQuery is the part of a URL's query that may hold one.
	inQuery = regexp.MustCompile(`(?s)(password=)[^&]*`)
)

// Clip makes a user's value fit for a message: short, and without the password of a URL that
// strayed into another setting.
func Clip(text string) string {
	const most = 64
	text = inQuery.ReplaceAllString(userInfo.ReplaceAllString(text, ":***@"), "${1}***")
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}
