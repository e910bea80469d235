package ops

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// TickView is an instant at which a job's schedule is due, as tools and the API show it. See Encode
// for its JSON.
type TickView struct {
	Tick  time.Time `json:"tick" wire:"set"`
	Local string    `json:"local"` // in the schedule's zone, RFC 3339
	Note  string    `json:"note"`  // the effect of a daylight-saving change: gap or fold, "" for none
	Words string    `json:"words"` // the note in words
}

func tickView(s *jobs.Schedule, tick time.Time) TickView {
	return TickView{tick, tick.In(s.Zone()).Format(time.RFC3339Nano), s.Note(tick), s.NoteWords(tick)}
}

type ticksIn struct {
	named
	From  time.Time `query:"from"`                                  // behind this instant; default: now
	Limit int       `query:"limit" default:"20" min:"1" max:"1000"` // how many
}

var rowTicks = row(&Operation[ticksIn, []TickView]{
	Info: Info{Method: "GET", Path: "jobs/{name}/ticks", Role: Viewer, Summary: "the next instants of a job's schedule"},
	do: func(ctx context.Context, c *conn, in ticksIn) ([]TickView, error) {
		return listTicks(ctx, c, in.Name, in.From, in.Limit)
	},
})

// ListTicks lists the next n instants of a job's schedule after an instant, the zero time for now;
// none for a job that follows another. Of a job with MaxRuns there are no more than it may still
// run. It returns ErrUnknownJob, and ErrRefused for an n that is not from 1 to 1,000.
func (c *Client) ListTicks(ctx context.Context, name string, after time.Time, n int) ([]TickView, error) {
	return call(ctx, c, rowTicks, ticksIn{named{name}, after, n})
}

func listTicks(ctx context.Context, c *conn, name string, after time.Time, n int) ([]TickView, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	s, err := query.Job(ctx, l, name)
	if err == nil {
		err = s.Err
	}
	if err != nil {
		return nil, err
	}
	d, err := jobs.ParseDefinition(s.Definition)
	if err != nil {
		return nil, fmt.Errorf("list ticks of %s: %w: %w", name, ErrUnknownFormat, err)
	}
	schedule, err := d.ParsedSchedule()
	if err != nil {
		return nil, fmt.Errorf("list ticks of %s: %w: %w", name, ErrUnknownFormat, err)
	}
	if after.IsZero() {
		if after, err = l.Now(ctx); err != nil {
			return nil, err
		}
	}
	views := []TickView{}
	if j := d.Job; j.MaxRuns > 0 {
		n = min(n, max(0, j.MaxRuns-int(s.Ran)))
	}
	for range n {
		if schedule == nil {
			break
		}
		if after = schedule.Next(after); after.IsZero() {
			break
		}
		views = append(views, tickView(schedule, after))
	}
	return views, nil
}

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

type previewIn struct {
	Schedule string        `query:"schedule"`                            // as of a job
	TimeZone string        `query:"time_zone"`                           // as of a job; default UTC
	Name     string        `query:"name"`                                // the job's name, which decides H and the offset of jitter
	Except   []string      `query:"except"`                              // a date or a range of dates without ticks; once for each
	Only     []string      `query:"only"`                                // a date or a range of dates with ticks; once for each
	StartAt  time.Time     `query:"start_at"`                            // as of a job
	EndAt    time.Time     `query:"end_at"`                              // as of a job
	Jitter   time.Duration `query:"jitter"`                              // as of a job, such as 10m
	Limit    int           `query:"limit" default:"10" min:"1" max:"20"` // how many ticks
}

var rowPreview = row(&Operation[previewIn, Preview]{
	Info: Info{Method: "GET", Path: "preview", Role: Viewer, Summary: "the next ticks of a schedule, whether there is such a job or not"},
	do: func(ctx context.Context, c *conn, in previewIn) (Preview, error) {
		j := jobs.Job{Name: in.Name, Schedule: in.Schedule, TimeZone: in.TimeZone, Except: in.Except, Only: in.Only,
			StartAt: in.StartAt, EndAt: in.EndAt, Jitter: in.Jitter}
		return previewSchedule(ctx, c, j, in.Limit)
	},
})

// Preview lists the next n ticks of a job with a schedule, by Redis' time, whether such a job
// exists or not, and the effect of the clock's changes. It reads the settings that decide the
// ticks, and the name, in place of which an example is used when it is empty. Faults of these
// settings are a part of the answer. It returns ErrRefused for an n that is not from 1 to 20.
func (c *Client) Preview(ctx context.Context, j jobs.Job, n int) (Preview, error) {
	return call(ctx, c, rowPreview, previewIn{j.Schedule, j.TimeZone, j.Name, j.Except, j.Only, j.StartAt, j.EndAt, j.Jitter, n})
}

func previewSchedule(ctx context.Context, c *conn, j jobs.Job, n int) (Preview, error) {
	now, err := c.Now(ctx)
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
	for _, f := range wire.Faults(err) {
		found = append(found, FaultView{f.Field, f.Msg})
	}
	return found
}
