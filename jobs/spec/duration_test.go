package spec

import "testing"

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]string{
		"15s": "15s", "0": "0s", "1h30m": "1h30m", "-2s": "-2s", "3600s": "1h", "61s": "1m1s", "3601s": "1h0m1s", "0.5s": "500ms",
		"15":  "15 has no unit; did you mean 15s",
		"-15": "-15 has no unit; did you mean -15s",
		"7d":  "168h", "-1d12h": "-36h", "1d-2h": `"1d-2h" is not a duration; write a number and a unit, like 500ms, 15s, 2m or 2d`,
		"2 D": `"2 D" is not a duration; did you mean 2d`, "999999d": "999999d is too long; the longest duration is 2562047h",
		"2 M":   `"2 M" is not a duration; did you mean 2m`,
		"15S":   `"15S" is not a duration; did you mean 15s`,
		"soon":  `"soon" is not a duration; write a number and a unit, like 500ms, 15s, 2m or 2d`,
		"":      `"" is not a duration; write a number and a unit, like 500ms, 15s, 2m or 2d`,
		"9999h": "9999h", "9999999999h": "9999999999h is too long; the longest duration is 2562047h",
		"-3000000h": "-3000000h is too long; the longest duration is 2562047h", "2562047h30m": "2562047h30m", "1h9999999999.5h": "1h9999999999.5h is too long; the longest duration is 2562047h",
		"3000000H": `"3000000H" is not a duration; write a number and a unit, like 500ms, 15s, 2m or 2d`,
	} {
		d, err := ParseDuration(text)
		got := FormatDuration(d)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
