package command

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/jobs/spec"
)

// The side of now on which a duration without a sign lies.
const (
	Ago     = -1 // runs list --since 10m
	FromNow = 1  // jobs pause --until 10m
)

// TimeForms is for the help of commands that take a time.
const TimeForms = `T is 2026-11-24, 2026-11-24 22:00 (by the clock of --tz), 2026-11-24T22:00:00Z, or a
duration such as 10m, 1h30m or 2d: -10m is ten minutes ago, +10m ten minutes from now.`

// TimeFlag is a flag that takes a time.
type TimeFlag struct {
	Text string
	Zone *time.Location // of --tz
	at   When
}

// AddTimeFlag adds the flag to a command, and --tz for the times that name no zone. The flag is read
// before the command runs. side is where a duration without a sign lies.
func AddTimeFlag(cmd *cobra.Command, name string, side int, usage string) *TimeFlag {
	f, before := &TimeFlag{}, cmd.PreRunE
	cmd.Flags().StringVar(&f.Text, name, "", usage)
	if before == nil {
		cmd.Flags().String("tz", "", "the `zone` of a T that names none, such as Europe/Berlin; default UTC")
		before = func(*cobra.Command, []string) error { return nil }
	}
	cmd.PreRunE = func(cmd *cobra.Command, args []string) (err error) {
		if err = before(cmd, args); err != nil {
			return err
		}
		if f.Zone, err = ParseZone(cmd.Flags().Lookup("tz").Value.String()); err == nil {
			f.at, err = ParseWhen("--"+name, f.Text, f.Zone, side)
		}
		return err
	}
	return f
}

// ParseZone reads --tz; "" is UTC.
func ParseZone(name string) (*time.Location, error) {
	s, err := cron.Parse("@daily", name)
	if err != nil {
		return nil, Usagef("--tz: %w", err)
	}
	return s.Zone(), nil
}

// When is an instant as a person gives it: absolute, or relative to Redis' now.
type When struct {
	at       time.Time
	from     time.Duration
	relative bool
}

// wallForms are the forms of times that need a zone.
var wallForms = []string{"2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly}

// ParseWhen reads the T of any flag; "" is the zero time.
func ParseWhen(flag, text string, zone *time.Location, side int) (When, error) {
	if text == "" {
		return When{}, nil
	}
	at, err := time.Parse(time.RFC3339Nano, strings.ToUpper(text)) // whose letters may be small
	for _, form := range wallForms {
		if err == nil {
			break
		}
		var wall time.Time
		if wall, err = time.Parse(form, text); err == nil {
			at = firstShowing(wall, zone)
		}
	}
	if err == nil && at.IsZero() { // programs print it for a time that is none
		return When{}, Usagef("%s %s is outside the years 1970 to 9999", flag, text)
	}
	if err == nil {
		return When{at: at}, nil
	}
	d, err := spec.ParseDuration(strings.TrimLeft(text, "+-"))
	if err != nil || d < 0 || len(text)-len(strings.TrimLeft(text, "+-")) > 1 {
		return When{}, Usagef("%s %s is neither a time such as 2026-11-24, 2026-11-24 22:00 or 2026-11-24T22:00:00Z, nor a duration such as 10m, -10m, +10m or 2d", flag, print.Quote(text))
	}
	if text[0] == '-' || text[0] != '+' && side == Ago {
		d = -d
	}
	return When{from: d, relative: true}, nil
}

// Resolve is the instant that is meant, where it is now.
func (w When) Resolve(now time.Time) time.Time {
	if !w.relative {
		return w.at
	}
	return now.Add(w.from).Truncate(time.Millisecond)
}

// Instant returns the instant of a flag, the zero time of an empty one. A relative time is resolved by
// Redis' clock: ticks are due by that clock, not by this machine's.
func (t Tool) Instant(f *TimeFlag) (time.Time, error) {
	if !f.at.relative {
		return f.at.at, nil
	}
	now, err := t.Client.Now(t.Ctx)
	return f.at.Resolve(now), err
}

// firstShowing is the first instant at which the zone's clock shows wall; when it leaves
// wall out, an instant before the gap.
func firstShowing(wall time.Time, zone *time.Location) time.Time {
	offset := func(days int) time.Duration {
		_, seconds := wall.AddDate(0, 0, days).In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	early, late := wall.Add(-max(offset(-1), offset(1))), wall.Add(-min(offset(-1), offset(1)))
	if late.In(zone).Format(time.DateTime) == wall.Format(time.DateTime) && early.In(zone).Format(time.DateTime) != wall.Format(time.DateTime) {
		return late
	}
	return early
}
