package ops

import (
	"context"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/audit"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops/internal/doctor"
)

// Violation is a broken promise that the records show, with its evidence.
type Violation = audit.Finding

// UnknownFormat is a record that this version cannot read; it is left alone.
type UnknownFormat = query.UnknownFormat

// Verification is the result of Verify.
type Verification struct {
	Violations    []Violation     `json:"violations"`
	UnknownFormat []UnknownFormat `json:"left_alone"` // records that this version cannot read
	// Unverified are the jobs, by name, that could not be checked, because their entry, definition
	// or history cannot be read.
	Unverified []string `json:"unverified"`
	// Overdue are ticks of jobs that no living node can run, so no node will record them soon.
	Overdue []Overdue `json:"overdue"`
	Checked Checked   `json:"checked"`
}

// Checked is how many jobs and rows were checked, and how many ticks were computed again.
type Checked struct {
	Jobs  int64 `json:"jobs"`
	Rows  int64 `json:"rows"`
	Ticks int64 `json:"ticks"`
}

// Overdue are the due ticks of a job that no living node can run.
type Overdue struct {
	Job   string    `json:"job"`
	First time.Time `json:"tick" wire:"set"`
	Last  time.Time `json:"until" wire:"set"`
	Count int64     `json:"count"`
	Why   string    `json:"why"`
}

// VerifyFilter restricts Verify; the zero value checks everything.
type VerifyFilter struct {
	Job string `query:"job"` // only this job
	// Since leaves out violations that only concern instants before it.
	Since time.Time `query:"since"`
}

var rowVerify = read("verify", "check the promises on the recorded history", verifyRecords).slow()

// Verify checks, from the stored schedules and the recorded history, that the promises P1 to P3
// were kept, and names the records that it could not read. It works while nodes run, and writes
// nothing. It returns ErrUnknownJob when there is no job of the filter's name.
func (c *Client) Verify(ctx context.Context, f VerifyFilter) (Verification, error) {
	return call(ctx, c, rowVerify, f)
}

func verifyRecords(ctx context.Context, c *conn, f VerifyFilter) (Verification, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return Verification{}, err
	}
	x, err := examine(ctx, l, f)
	if err == nil && f.Job == "" {
		var keys []UnknownFormat
		keys, err = query.UnknownKeys(ctx, l)
		x.UnknownFormat = append(x.UnknownFormat, keys...)
	}
	if err == nil {
		x.Overdue, err = overdue(ctx, c, l, f)
	}
	if err != nil {
		return Verification{}, err // a part of the records proves nothing
	}
	return x, nil
}

// overdue are the due ticks of jobs that no living node can run, without paused jobs.
func overdue(ctx context.Context, c *conn, l *ledger.Ledger, f VerifyFilter) (all []Overdue, err error) {
	stored, err := query.Jobs(ctx, l)
	if err != nil {
		return nil, err
	}
	now, err := l.Now(ctx)
	if err != nil {
		return nil, err
	}
	held, err := inspect.Holders(ctx, l, c.Roster(), inspect.Page{Jobs: stored, Whole: true})
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
			continue // Verify names it among the jobs in an unknown format
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
		all = append(all, Overdue{Job: s.Job, First: timeOf(s.Cursor), Last: timeOf(last.UnixMilli()), Count: max(1, int64(count)), Why: why})
	}
	return all, nil
}

func examine(ctx context.Context, l *ledger.Ledger, f VerifyFilter) (Verification, error) {
	var x Verification
	unread, err := query.EachJob(ctx, l, f.Job, func(b query.JobSnapshot) {
		found, ticks := audit.Books(b)
		x.Violations = append(x.Violations, found...)
		x.Checked.Rows, x.Checked.Ticks = x.Checked.Rows+int64(len(b.Rows)), x.Checked.Ticks+ticks
	})
	x.UnknownFormat, x.Unverified, x.Checked.Jobs = unread.UnknownFormat, unread.Unverified, unread.Jobs
	if !f.Since.IsZero() {
		x.Violations = slices.DeleteFunc(x.Violations, func(v Violation) bool { return v.Before(f.Since) })
	}
	return x, err
}

// Problem is something that is wrong with a namespace or its Redis, in words.
type Problem = doctor.Problem

// Severities of a Problem.
const (
	// SeverityWarning is a possible harm of a later day, or perhaps intended.
	SeverityWarning = doctor.Warning
	// SeverityError is a harm now, or at the next crash: an operator must act.
	SeverityError = doctor.Error
)

var rowProblems = read("problems", "what is wrong, in words, with what to do: errors first", plain(func(ctx context.Context, c *conn) ([]Problem, error) {
	return doctor.Examine(ctx, c.Conn)
})).slow()

// Problems looks for faults of the namespace, its nodes and its Redis, each with a cure: errors
// first. It changes nothing. At most 20 problems of a code are listed one by one; a further one
// counts the rest. A record that may not or cannot be read is a problem itself. It looks at the
// name of every key in Redis and at every job: seconds, where there are 100,000. It returns an
// error only when Redis does not answer.
func (c *Client) Problems(ctx context.Context) ([]Problem, error) {
	return call(ctx, c, rowProblems, None{})
}
