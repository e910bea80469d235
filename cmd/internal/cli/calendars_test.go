package cli

import (
	"slices"
	"testing"
)

// The stored definition has the dates of a calendar, not its name: a job that names it and one that lists its dates are the same.
func TestCalendarsBecomeDates(t *testing.T) {
	file := write(t, `
calendars: {holidays: [2026-12-24, 2026-12-31..2027-01-01]}
jobs:
  - {name: a, schedule: "@daily", except: [2027-05-01, holidays], start_at: 2026-12-01T08:00:00+01:00, exec: {command: ["true"]}}
`)
	l, err := load(source{file: file})
	if err != nil {
		t.Fatal(err)
	}
	d := l.jobs[0].Definition()
	if want := []string{"2027-05-01", "2026-12-24", "2026-12-31..2027-01-01"}; !slices.Equal(d.Except, want) || d.StartAt != 1_796_108_400_000 {
		t.Errorf("stored %q from %d, want %q", d.Except, d.StartAt, want)
	}
}
