package ops

import (
	"context"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Violation is a broken promise that the records show, with its evidence.
type Violation = audit.Finding

// UnknownFormat is a record that this version cannot read; it is left alone.
type UnknownFormat = ledger.UnknownFormat

// Verification is the result of Verify.
type Verification struct {
	Violations    []Violation
	UnknownFormat []UnknownFormat
	// Unverified are the jobs, by name, that could not be checked, because their entry, definition
	// or history cannot be read.
	Unverified []string
	// Overdue are ticks of jobs that no living node can run, so nobody will record them soon.
	Overdue []Overdue
	// How many jobs and rows were checked, and how many ticks were computed again.
	Jobs, Rows, Ticks int64
}

// Overdue are the due ticks of a job that no living node can run.
type Overdue struct {
	Job   string `json:"job"`
	First Stamp  `json:"tick"`
	Last  Stamp  `json:"until"`
	Count int64  `json:"count"`
	Why   string `json:"why"`
}

// VerifyFilter selects what Verify checks; the zero value is everything.
type VerifyFilter struct {
	Job string
	// Since leaves out violations that only concern instants before it.
	Since time.Time
}

// Verify checks, from the stored schedules and the recorded history, that the promises P1 to P3
// were kept, and names the records that it could not read. It works while nodes run, and writes
// nothing. It returns ErrUnknownJob when there is no job of the filter's name.
func (c *Client) Verify(ctx context.Context, f VerifyFilter) (Verification, error) {
	l, err := c.open(ctx)
	if err != nil {
		return Verification{}, err
	}
	x, err := examine(ctx, l, f)
	if err == nil && f.Job == "" {
		var keys []UnknownFormat
		keys, err = l.UnknownKeys(ctx)
		x.UnknownFormat = append(x.UnknownFormat, keys...)
	}
	if err == nil {
		x.Overdue, err = c.overdue(ctx, l, f)
	}
	return x, err
}

// overdue are the due ticks of jobs that no living node can run, without paused jobs.
func (c *Client) overdue(ctx context.Context, l *ledger.Ledger, f VerifyFilter) (all []Overdue, err error) {
	stored, err := l.Jobs(ctx)
	if err != nil {
		return nil, err
	}
	now, err := l.Now(ctx)
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
			continue // Verify names it among those that are left alone
		}
		schedule, err := d.ParsedSchedule()
		if err != nil || schedule == nil {
			continue // the same, or the job follows another
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

func examine(ctx context.Context, l *ledger.Ledger, f VerifyFilter) (Verification, error) {
	var x Verification
	unread, err := l.EachJob(ctx, f.Job, func(b ledger.JobSnapshot) {
		found, ticks := audit.Books(b)
		x.Violations = append(x.Violations, found...)
		x.Rows, x.Ticks = x.Rows+int64(len(b.Rows)), x.Ticks+ticks
	})
	x.UnknownFormat, x.Unverified, x.Jobs = unread.UnknownFormat, unread.Unverified, unread.Jobs
	if !f.Since.IsZero() {
		x.Violations = slices.DeleteFunc(x.Violations, func(v Violation) bool { return v.Before(f.Since) })
	}
	return x, err
}
