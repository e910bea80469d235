package main

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]string{
		"15s": "15s", "0": "0s", "1h30m": "1h30m", "-2s": "-2s",
		"15":    "15 has no unit; did you mean 15s",
		"-15":   "-15 has no unit; did you mean -15s",
		"7d":    "7d: a day is not a unit; did you mean 168h",
		"2 M":   `"2 M" is not a duration; did you mean 2m`,
		"15S":   `"15S" is not a duration; did you mean 15s`,
		"soon":  `"soon" is not a duration; write a number and a unit, like 500ms, 15s or 2m`,
		"":      `"" is not a duration; write a number and a unit, like 500ms, 15s or 2m`,
		"9999h": "9999h", "9999999999h": "9999999999h is too long; the longest duration is 2562047h",
		"-3000000h": "-3000000h is too long; the longest duration is 2562047h", "2562047h30m": "2562047h30m", "1h9999999999.5h": "1h9999999999.5h is too long; the longest duration is 2562047h",
		"3000000H": `"3000000H" is not a duration; write a number and a unit, like 500ms, 15s or 2m`,
	} {
		d, err := parseDuration(text)
		got := shortDuration(d)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

// TestShortDuration reads back what it writes.
func TestShortDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 15 * time.Second: "15s", time.Minute: "1m", 10 * time.Minute: "10m", time.Hour: "1h", 168 * time.Hour: "168h",
		90 * time.Minute: "1h30m", 61 * time.Second: "1m1s", time.Hour + time.Second: "1h0m1s", 500 * time.Millisecond: "500ms",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{1, time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "unit")
		d := unit * time.Duration(rapid.IntRange(-5000, 5000).Draw(t, "n"))
		if back, err := parseDuration(shortDuration(d)); err != nil || back != d {
			t.Errorf("%v is written %s and read %v, %v", d, shortDuration(d), back, err)
		}
	})
}

// TestEditDistance checks the table of distances against the plain definition.
func TestEditDistance(t *testing.T) {
	var plainly func(a, b string) int
	plainly = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		change := 1
		if a[0] == b[0] {
			change = 0
		}
		d := min(plainly(a[1:], b)+1, plainly(a, b[1:])+1, plainly(a[1:], b[1:])+change)
		if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
			d = min(d, plainly(a[2:], b[2:])+1)
		}
		return d
	}
	word := rapid.StringMatching(`[abc]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := word.Draw(t, "a"), word.Draw(t, "b")
		if got, want := editDistance(a, b), plainly(a, b); got != want {
			t.Errorf("%q to %q: got %d, want %d", a, b, got, want)
		}
	})
}

func TestDidYouMean(t *testing.T) {
	for _, tt := range []struct{ typed, words, want string }{
		{"shedule", "name schedule exec", "schedule"},
		{"SCHEDULE", "name schedule", "schedule"},
		{"warning", "debug info warn error", "warn"},
		{"directory", "command dir env", "dir"},
		{"nmae", "name", "name"},
		{"no", "on_crash none", ""},
		{"banana", "name schedule exec", ""},
		{strings.Repeat("x", 100), strings.Repeat("x", 98) + "yy", ""},
	} {
		want := tt.want
		if want != "" {
			want = "; did you mean " + want
		}
		if got := didYouMean(tt.typed, strings.Fields(tt.words)); got != want {
			t.Errorf("%s: got %q, want %q", tt.typed, got, want)
		}
	}
}
