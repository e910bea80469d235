package ops

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
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

func listTicks(ctx context.Context, c *conn, name string, after time.Time, n int) ([]TickView, error) {
	l, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	s, err := l.Job(ctx, name)
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
