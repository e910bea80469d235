package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Violation is a promise that the books show to be broken, with its evidence.
type Violation = audit.Finding

// UnknownFormat is what this version does not understand, and does not touch.
type UnknownFormat = ledger.UnknownFormat

// Examined is what an examination of the books found.
type Examined struct {
	Violations []Violation
	LeftAlone  []UnknownFormat
	// Unverified are the jobs, by name, that could not be checked, because their entry, their definition
	// or their history cannot be read.
	Unverified []string
	// Overdue are ticks of jobs that no living node can run: nobody will account for them soon.
	Overdue []Overdue
	// What was checked: ticks are those that were recomputed.
	Jobs, Rows, Ticks int64
}

// Overdue are ticks that are due, and wait for a node that can run their job.
type Overdue struct {
	Job   string `json:"job"`
	First Stamp  `json:"tick"`
	Last  Stamp  `json:"until"`
	Count int64  `json:"count"`
	Why   string `json:"why"`
}

// ExamineFilter says which books Examine looks at; the zero value is all of them.
type ExamineFilter struct {
	Job string
	// Since leaves out violations that concern only instants before it.
	Since time.Time
}

// Examine recomputes, from the stored schedules and the recorded history, that the promises P1 to P3
// held, and names what it could not read. It works beside running nodes and writes nothing. It returns
// ErrUnknownJob when there is no job of the filter's name.
func (c *Client) Examine(ctx context.Context, f ExamineFilter) (Examined, error) {
	l, err := c.open(ctx)
	if err != nil {
		return Examined{}, err
	}
	x, err := examine(ctx, l, f)
	if err == nil && f.Job == "" {
		var keys []UnknownFormat
		keys, err = l.UnknownKeys(ctx)
		x.LeftAlone = append(x.LeftAlone, keys...)
	}
	if err == nil {
		x.Overdue, err = c.overdue(ctx, l, f)
	}
	return x, err
}

// overdue are the ticks of jobs that no living node can run, which are not paused.
func (c *Client) overdue(ctx context.Context, l *ledger.Ledger, f ExamineFilter) (all []Overdue, err error) {
	stored, err := l.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	now, _, err := l.Time(ctx)
	if err != nil {
		return nil, err
	}
	held, err := inspect.Holders(ctx, l, c.roster(), inspect.Some{Jobs: stored, Whole: true})
	if err != nil {
		return nil, err
	}
	for _, s := range stored {
		why := held[s.Job].NoNode
		if why == "" || s.Cursor == 0 || s.Cursor > now.UnixMilli() || f.Job != "" && s.Job != f.Job || s.Pause.Holds(now.UnixMilli()) {
			continue
		}
		d, err := jobs.ParseDefinition(s.Definition)
		if err != nil {
			continue // it is among those that are left alone
		}
		schedule, err := d.Job().ParsedSchedule()
		if err != nil || schedule == nil {
			continue // as above; or it follows another job
		}
		first := time.UnixMilli(s.Cursor)
		count, last := schedule.Count(first, now.Add(time.Millisecond))
		if last.Before(first) {
			last = first
		}
		all = append(all, Overdue{Job: s.Job, First: *stampOf(s.Cursor), Last: *stampOf(last.UnixMilli()), Count: max(1, int64(count)), Why: why})
	}
	return all, nil
}

// Verify is Examine for a namespace in which nobody but nodes of this version writes: what cannot be
// read is a violation too. Name restricts it to one job, "" takes all. A job whose definition cannot be
// read is checked without its schedule.
func (c *Client) Verify(ctx context.Context, name string) ([]Violation, error) {
	l, err := c.open(ctx)
	if err != nil {
		return nil, err
	}
	x, err := examine(ctx, l, ExamineFilter{Job: name})
	for _, s := range x.LeftAlone {
		if s.Kind != "definition" {
			x.Violations = append(x.Violations, Violation{Kind: audit.KindBooks, Job: s.Job, Promise: audit.Unsound, What: s.What, Evidence: []string{s.Key}})
		}
	}
	return x.Violations, err
}

func examine(ctx context.Context, l *ledger.Ledger, f ExamineFilter) (Examined, error) {
	var x Examined
	unread, err := l.EachJob(ctx, f.Job, func(b ledger.JobBooks) {
		found, ticks := audit.Books(b)
		x.Violations = append(x.Violations, found...)
		x.Rows, x.Ticks = x.Rows+int64(len(b.Rows)), x.Ticks+ticks
	})
	x.LeftAlone, x.Unverified, x.Jobs = unread.LeftAlone, unread.Unverified, unread.Jobs
	if !f.Since.IsZero() {
		x.Violations = slices.DeleteFunc(x.Violations, func(v Violation) bool { return v.Before(f.Since) })
	}
	return x, err
}
