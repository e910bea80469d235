package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/ops/internal/generations"
)

// nobody is the default author.
const nobody = "unknown"

// instant is a time in ms, as the ledger takes it; 0 for the zero time.
func instant(op string, t time.Time) (int64, error) {
	if t.IsZero() {
		return 0, nil
	}
	if ms := t.UnixMilli(); ms > 0 && t.UTC().Year() <= 9999 {
		return ms, nil
	}
	return 0, fmt.Errorf("%w: %s: %s is outside the years 1970 to 9999", ErrRefused, op, t.UTC().Format(time.RFC3339))
}

// PauseOptions are who pauses a job, and why.
type PauseOptions struct {
	// Reason is for people who find the job paused. It is required; at most 256 bytes are kept.
	Reason string `json:"reason"`
	// Author is who pauses it; at most 64 bytes are kept. Default "unknown".
	Author string
	// Until is when the pause ends, in whole milliseconds. Default: when the job is resumed.
	Until time.Time `json:"until,omitempty"`
}

func pauseJob(ctx context.Context, c *conn, name string, o PauseOptions) (err error) {
	o.Author, o.Reason = c.by(o.Author, o.Reason)
	reason := strings.TrimSpace(o.Reason)
	if reason == "" {
		return fmt.Errorf("%w: pause %s: the reason is empty; say why, for whoever finds the job paused", ErrRefused, name)
	}
	if err := utf8Only("pause "+name, o.Author, reason); err != nil {
		return err
	}
	until, err := instant("pause "+name, o.Until)
	if err != nil {
		return err
	}
	l, err := c.open(ctx)
	if err != nil {
		return err
	}
	return l.Pause(ctx, name, ledger.Pause{Author: author(o.Author), Reason: oneLine(reason), Until: until})
}

func resumeJob(ctx context.Context, c *conn, name string) (err error) {
	l, err := c.open(ctx)
	if err != nil {
		return err
	}
	return l.Resume(ctx, name)
}

// CancelOptions are who cancels a run, and why. The zero value is useful.
type CancelOptions struct {
	// Author is who cancels it; at most 64 bytes are kept. Default "unknown".
	Author string
	// Reason is for readers of the history; at most 256 bytes are kept. Default none.
	Reason string `json:"reason,omitempty"`
}

// Cancellation is the result of Cancel.
type Cancellation string

// The results of Cancel.
const (
	// CancelTold: the run is in flight. Its node ends its context within sweep_every, with the
	// cause jobs.ErrCancelled. If the function returns before that, its own result counts.
	CancelTold Cancellation = "told"
	// CancelRecorded: the run was pending, and is recorded as cancelled, by this call or an earlier
	// one.
	CancelRecorded Cancellation = "recorded"
)

func cancelRun(ctx context.Context, c *conn, id string, o CancelOptions) (did Cancellation, job string, err error) {
	o.Author, o.Reason = c.by(o.Author, o.Reason)
	if err := utf8Only("cancel run "+id, o.Author, o.Reason); err != nil {
		return "", job, err
	}
	l, err := c.openAppend(ctx)
	if err != nil {
		return "", job, err
	}
	r, err := locate(ctx, l, id)
	if err != nil {
		return "", job, cut(ctx, "cancel run "+id, err)
	}
	job = r.Job()
	word, err := l.Cancel(ctx, r.Job(), r.ID(), author(o.Author), oneLine(o.Reason))
	if errors.Is(err, ErrUnknownRun) && r.Lease != nil { // it was handed back meanwhile, and goes on with another id
		if r, _, err = inspect.Refresh(ctx, l, *r.Lease, id); err != nil {
			return "", job, cut(ctx, "cancel run "+id, err)
		}
		word, err = l.Cancel(ctx, r.Job(), r.ID(), author(o.Author), oneLine(o.Reason))
	}
	switch {
	case err != nil:
		return "", job, err
	case word == ledger.Told:
		return CancelTold, job, nil
	default:
		return CancelRecorded, job, nil
	}
}

func rerunRun(ctx context.Context, c *conn, id string) (next, job string, err error) {
	l, err := c.openAppend(ctx)
	if err != nil {
		return "", job, err
	}
	r, err := locate(ctx, l, id)
	if err != nil {
		return "", job, cut(ctx, "rerun "+id, err)
	}
	job = r.Job()
	next, err = l.Rerun(ctx, r.Job(), r.ID())
	return next, job, err
}

// removeJob deletes a job of a program, or the remains of a stored one, that no living node holds.
func removeJob(ctx context.Context, c *conn, l *ledger.Ledger, name string) error {
	s, err := l.Job(ctx, name)
	if err != nil {
		return err
	}
	nodes, unclear, err := inspect.HeldBy(ctx, l, c.roster(), name)
	if err != nil {
		return err
	}
	d, _ := jobs.ParseDefinition(s.Definition) // an unreadable one names no job that it follows
	if len(nodes) > 0 && d.Stored > 0 {
		return fmt.Errorf("%w: delete job %s: it is a stored job, which nodes hold", ErrRefused, name)
	}
	if len(nodes) > 0 {
		return fmt.Errorf("%w: delete job %s: held by %s; take the job out of their configuration and restart them", ErrRefused, name, generations.Some(nodes))
	}
	if unclear > 0 {
		return fmt.Errorf("%w: delete job %s: what %d of the living nodes hold cannot be read by this version; use the newest one (a node that is up drops those which are gone)", ErrRefused, name, unclear)
	}
	if err := l.Remove(ctx, name); err != nil {
		return err
	}
	for _, upstream := range d.After {
		if err := l.Unfollow(ctx, upstream, name); err != nil {
			return fmt.Errorf("job %s is deleted; that it followed %s is still noted, which does no harm: %w", name, upstream, err)
		}
	}
	return nil
}

// by is the author and the reason of an act: from the options, else from the client's actor.
func (c *conn) by(author, reason string) (string, string) {
	if c.actor == nil {
		return author, reason
	}
	return cmp.Or(author, c.actor.Name), cmp.Or(reason, c.actor.Reason)
}

func ofJob(job string) string {
	if job == "" {
		return ""
	}
	return "of job " + job
}

func untilWords(until time.Time) string {
	if until.IsZero() {
		return ""
	}
	return "until " + FormatTime(until)
}

func author(s string) string { return cmp.Or(oneLine(s), nobody) }

// oneLine makes a text fit for one line.
func oneLine(s string) string {
	return strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "\uFFFD")
}

// utf8Only refuses an author or a reason that would be kept otherwise than it was given.
func utf8Only(op, author, reason string) error {
	switch {
	case !utf8.ValidString(author):
		return fmt.Errorf("%w: %s: the author %+.64q is not valid UTF-8", ErrRefused, op, author)
	case !utf8.ValidString(reason):
		return fmt.Errorf("%w: %s: the reason %+.256q is not valid UTF-8", ErrRefused, op, reason)
	}
	return nil
}
