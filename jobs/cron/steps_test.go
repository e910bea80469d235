package cron_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/escapement/escapement/jobs/cron"
)

// A step that leaves one value is refused in a job, with the value to write. Stored schedules with such a step are read.
func TestStepsThatNeverStep(t *testing.T) {
	for expr, want := range map[string]string{
		"*/60 * * * *":      `minute "*/60": step 60 never steps, because the values end before; write 0 instead`,
		"0 */24 * * *":      `hour "*/24": step 24 never steps, because the values end before; write 0 instead`,
		"*/60 */24 * * *":   `; hour "*/24"`,
		"*/60 0 0 * * *":    `second "*/60"`,
		"0 0 */31 * *":      "write 1 instead",
		"0 0 1 */12 *":      "write 1 instead",
		"0 0 * * */7":       "write 0 instead",
		"0 0 * * MON/6":     "write 1 instead",
		"30-40/15 * * * *":  "write 30 instead",
		"45/15 * * * *":     "write 45 instead",
		"1,*/60 * * * *":    `minute "*/60"`,
		"H/60 * * * *":      "write H instead",
		"H(0-9)/10 * * * *": "write H(0-9) instead",
	} {
		s, err := cron.ParseFor("a", expr, "")
		if err != nil {
			t.Errorf("%s, stored: %v", expr, err)
			continue
		}
		if err := s.CheckSteps(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", expr, err, want)
		}
	}
	for _, expr := range []string{"*/59 * * * *", "0 */23 * * *", "0 0 * * 5-7/2", "0 0 * * FRI-SUN/2", "44/15 * * * *", "H/59 * * * *", "@daily", "@every 60m", "0 0 L,*/15 * 5#2"} {
		s, err := cron.ParseFor("a", expr, "")
		if err == nil {
			err = s.CheckSteps()
		}
		if err != nil {
			t.Errorf("%s: %v", expr, err)
		}
	}
}

// A step is refused if and only if the field has the same values with one number in its place.
func TestStepsAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, 5).Draw(t, "field")
		lo, hi := lowest[i], highest[i]
		a := rapid.IntRange(lo, hi).Draw(t, "a")
		b := rapid.IntRange(a, hi).Draw(t, "b")
		step := rapid.IntRange(1, hi-lo+1).Draw(t, "step")
		text := fmt.Sprintf("%d-%d/%d", a, b, step)
		switch rapid.IntRange(0, 2).Draw(t, "form") {
		case 0:
			a, b, text = lo, hi, fmt.Sprintf("*/%d", step)
		case 1:
			b, text = hi, fmt.Sprintf("%d/%d", a, step)
		}
		values := 0
		for v := a; v <= b; v += step {
			values++
		}
		fields := []string{"0", "0", "0", "*", "*", "*"}
		fields[i] = text
		s, err := cron.Parse(strings.Join(fields, " "), "")
		if err != nil {
			t.Skip("never fires")
		}
		if err := s.CheckSteps(); (err != nil) != (values == 1) {
			t.Fatalf("%s has %d values: %v", text, values, err)
		}
	})
}
