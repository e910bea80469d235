package ops

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/jobs"
)

// Preview is the schedule of a job, which need not exist: its text and its ticks from now on.
type Preview struct {
	Words    string     `json:"words"`    // the schedule in plain English, and where crontab(5) reads it otherwise
	Resolved string     `json:"resolved"` // the schedule without H
	TimeZone string     `json:"time_zone"`
	Ticks    []TickView `json:"ticks"`
	// Clock describes the ticks when the clock of the zone is set, "" where it never is, and
	// Changes are the next two times that it is set.
	Clock   string        `json:"clock"`
	Changes []ClockChange `json:"changes"`
	// Faults are the faults of the schedule; all other fields are empty then.
	Faults []FaultView `json:"faults"`
}

// ClockChange is an instant at which the clock of a zone is set.
type ClockChange struct {
	At    time.Time  `json:"at" wire:"set"`
	From  string     `json:"from"`  // what the clock shows before, RFC 3339
	To    string     `json:"to"`    // and from then on
	Ticks []TickView `json:"ticks"` // the first ticks with a note there, three at most
}

// FaultView is a fault in one setting of a job.
type FaultView struct {
	Field string `json:"field"` // spelt as in config.yaml, such as retry.max
	Text  string `json:"text"`  // the fault, and the cure
}

const (
	// exampleName is the name of a job that has none yet; it decides H and the offset of jitter.
	exampleName = "example"
	// changesMost bounds the clock changes of a Preview, and changeTicks the ticks of each.
	changesMost = 2
	changeTicks = 3
	// changeSteps bounds the ticks that are looked at for each change.
	changeSteps = 10_000
	// changesWithin is how far a Preview looks for them.
	changesWithin = 400 * 24 * time.Hour
)

func previewSchedule(ctx context.Context, c *conn, j jobs.Job, n int) (Preview, error) {
	now, err := redisNow(ctx, c)
	if err != nil {
		return Preview{}, err
	}
	return preview(j, now, n), nil
}

func preview(j jobs.Job, now time.Time, n int) Preview {
	p := Preview{Ticks: []TickView{}, Changes: []ClockChange{}}
	j = jobs.Job{Name: cmp.Or(j.Name, exampleName), Schedule: j.Schedule, TimeZone: j.TimeZone, Except: j.Except, Only: j.Only,
		StartAt: j.StartAt, EndAt: j.EndAt, Jitter: j.Jitter, Func: func(context.Context, *jobs.Run) error { return nil }}.WithDefaults(jobs.Defaults{})
	if p.Faults = FaultsOf(j.Validate()); len(p.Faults) > 0 {
		return p
	}
	s, err := j.ParsedSchedule()
	if err != nil {
		p.Faults = []FaultView{{"schedule", err.Error()}}
		return p
	}
	p.Words, p.Resolved, p.TimeZone, p.Clock = s.Words(), s.Resolved(), s.Zone().String(), s.ClockWords()
	if crontab := s.CrontabWords(); crontab != "" {
		p.Words += "; " + crontab
	}
	for tick := s.Next(now); len(p.Ticks) < n && !tick.IsZero(); tick = s.Next(tick) {
		p.Ticks = append(p.Ticks, tickView(s, tick))
	}
	if p.Clock != "" {
		p.Changes = clockChanges(s, now)
	}
	return p
}

// clockChanges are the next times that the clock of a schedule's zone is set, each with the first
// ticks that it moves.
func clockChanges(s *jobs.Schedule, now time.Time) []ClockChange {
	changes := []ClockChange{}
	for at := now; len(changes) < changesMost; {
		_, at = at.In(s.Zone()).ZoneBounds()
		if at.IsZero() || at.Sub(now) > changesWithin {
			break
		}
		before := at.Add(-time.Nanosecond)
		_, was := before.Zone()
		_, is := at.Zone()
		if was == is {
			continue // another name, or another half of the year, of the same clock
		}
		c := ClockChange{At: at, From: at.In(time.FixedZone("", was)).Format(time.RFC3339), To: at.Format(time.RFC3339), Ticks: []TickView{}}
		twice := time.Duration(max(0, was-is)) * time.Second // the repeated part of the day
		moved := at.Add(s.Offset())                          // by jitter, as all ticks are
		tick, end := s.Next(moved.Add(-twice-1)), moved.Add(twice)
		for steps := 0; steps < changeSteps && len(c.Ticks) < changeTicks && !tick.IsZero() && !tick.After(end); steps++ {
			if v := tickView(s, tick); v.Note != "" {
				c.Ticks = append(c.Ticks, v)
			}
			tick = s.Next(tick)
		}
		changes = append(changes, c)
	}
	return changes
}

// FaultsOf are the faults of settings that an error joins or wraps, each a *jobs.FieldError; none
// for another error.
func FaultsOf(err error) []FaultView {
	found := []FaultView{}
	var joined interface{ Unwrap() []error }
	if f := new(jobs.FieldError); errors.As(err, &joined) {
		for _, e := range joined.Unwrap() {
			found = append(found, FaultsOf(e)...)
		}
	} else if errors.As(err, &f) {
		found = append(found, FaultView{f.Field, f.Msg})
	}
	return found
}
