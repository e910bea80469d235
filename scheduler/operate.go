package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/generations"
	"github.com/escapement/escapement/scheduler/internal/inspect"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// nobody is the author of what nobody put a name to.
const nobody = "unknown"

// TriggerOptions are the options of Trigger; the zero value runs the job now, without a payload.
type TriggerOptions struct {
	// Payload is handed to the function; JSON, at most 64 KiB, and 1 KiB while 256 runs beside this job are due and wait.
	// Default none.
	Payload []byte
	// At is when to run, and the run's tick, in whole milliseconds: 1970 to 9999. One that is over
	// runs at once. Default now.
	At time.Time
	// Unique names the request within its job: whoever asks with the same key again is answered with
	// the first one's run, and their payload and time do not count. It is remembered for 168 h after At,
	// or after now, and as long as the history has the run. Default none: each request is a run of its own.
	Unique string
}

// Trigger enqueues one run of a job beside its schedule, and returns the run's id. It runs also while
// the job is paused, and waits while another run holds it. It returns ErrUnknownJob, and ErrRefused for
// a payload that is no JSON or too large, an instant out of range, and when too many runs wait. When
// the answer gets lost, only a request with Unique can be repeated without making a second run.
func (c *Client) Trigger(ctx context.Context, name string, o TriggerOptions) (string, error) {
	if len(o.Payload) > 0 && !json.Valid(o.Payload) {
		return "", fmt.Errorf("%w: run %s: the payload is not JSON; quote a plain text: '\"text\"'", ErrRefused, name)
	}
	at, err := instant("run "+name, o.At)
	if err != nil {
		return "", err
	}
	l, err := c.open(ctx)
	if err != nil {
		return "", err
	}
	want := ledger.Trigger{Run: newID(), Payload: o.Payload, At: at, Unique: o.Unique}
	id, err := l.Trigger(ctx, name, want)
	if errors.Is(err, locking.ErrUnreachable) && o.Unique == "" {
		err = fmt.Errorf("%w; if the request arrived all the same, it is run %s", err, want.Run)
	}
	return id, err
}

// Asked finds the run that a unique key names already, as Run does. It returns ErrUnknownRun when nobody
// has asked with it, or when neither a run in flight nor the history has that run any more.
func (c *Client) Asked(ctx context.Context, name, unique string) (RunView, error) {
	return c.Run(ctx, ledger.UniqueRun(name, unique))
}

// instant is a time as the ledger takes it, ms; 0 for the zero time.
func instant(op string, t time.Time) (int64, error) {
	if t.IsZero() {
		return 0, nil
	}
	if ms := t.UnixMilli(); ms > 0 && t.UTC().Year() <= 9999 {
		return ms, nil
	}
	return 0, fmt.Errorf("%w: %s: %s is outside the years 1970 to 9999", ErrRefused, op, t.UTC().Format(time.RFC3339))
}

// PauseOptions say who pauses a job and why.
type PauseOptions struct {
	// Reason is for whoever finds the job paused; required, at most 256 bytes are kept.
	Reason string
	// Author is who pauses it; at most 64 bytes are kept. Default "unknown".
	Author string
	// Until is when the pause ends by itself, in whole milliseconds. Default: when it is resumed.
	Until time.Time
}

// Pause pauses a job. Ticks that nobody has claimed yet, and those up to the end of the pause, will not
// run and are recorded as paused; they are not made up for. A run that is going goes on, and a run by
// hand is granted. Paused again, the job takes the new end, author and reason. It returns ErrUnknownJob,
// and ErrRefused without a reason and for an end that is over by Redis' clock.
func (c *Client) Pause(ctx context.Context, name string, o PauseOptions) error {
	reason := strings.TrimSpace(o.Reason)
	if reason == "" {
		return fmt.Errorf("%w: pause %s: the reason is empty; say why, for whoever finds the job paused", ErrRefused, name)
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

// Resume ends a job's pause: ticks from now on run again. Of a job that is not paused it changes
// nothing. It returns ErrUnknownJob.
func (c *Client) Resume(ctx context.Context, name string) error {
	l, err := c.open(ctx)
	if err != nil {
		return err
	}
	return l.Resume(ctx, name)
}

// CancelOptions say who cancels a run and why; the zero value is useful.
type CancelOptions struct {
	// Author is who cancels it; at most 64 bytes are kept. Default "unknown".
	Author string
	// Reason is for whoever reads the history; at most 256 bytes are kept. Default none.
	Reason string
}

// Cancellation says what Cancel did.
type Cancellation string

// What Cancel did.
const (
	// CancelTold: the run is going; its node ends its context within sweep_every, with the cause
	// jobs.ErrCancelled. If it returns an answer of its own before, that one counts.
	CancelTold Cancellation = "told"
	// CancelRecorded: nobody was granted it yet, and it is recorded as cancelled; or it was before.
	CancelRecorded Cancellation = "recorded"
)

// Cancel ends a run, by its id or the id it was asked for. It does not wait for the run's end; Wait does.
// It returns ErrUnknownRun, and ErrRefused when the run has ended otherwise.
func (c *Client) Cancel(ctx context.Context, id string, o CancelOptions) (Cancellation, error) {
	l, err := c.openAppend(ctx)
	if err != nil {
		return "", err
	}
	r, err := locate(ctx, l, id)
	if err != nil {
		return "", cut(ctx, "cancel run "+id, err)
	}
	word, err := l.Cancel(ctx, r.Job(), r.ID(), author(o.Author), oneLine(o.Reason))
	if errors.Is(err, ErrUnknownRun) && r.Lease != nil { // handed back meanwhile, it goes on under another id
		if r, _, err = inspect.Again(ctx, l, *r.Lease, id); err != nil {
			return "", cut(ctx, "cancel run "+id, err)
		}
		word, err = l.Cancel(ctx, r.Job(), r.ID(), author(o.Author), oneLine(o.Reason))
	}
	switch {
	case err != nil:
		return "", err
	case word == ledger.Told:
		return CancelTold, nil
	default:
		return CancelRecorded, nil
	}
}

// Rerun asks for one more attempt of a run that has ended, whatever its outcome, and returns the
// attempt's id: the same however often it is asked for, so that a third attempt is a rerun of the
// second. It has the tick and the payload of the run, runs also while the job is paused, and waits
// while another run holds it. It returns ErrUnknownRun, and ErrRefused while the run, or another attempt
// of its tick, goes on or is still to come.
func (c *Client) Rerun(ctx context.Context, id string) (string, error) {
	l, err := c.openAppend(ctx)
	if err != nil {
		return "", err
	}
	r, err := locate(ctx, l, id)
	if err != nil {
		return "", cut(ctx, "rerun "+id, err)
	}
	return l.Rerun(ctx, r.Job(), r.ID())
}

// Remove removes a job and its history for ever. It returns ErrUnknownJob, and ErrRefused, with their
// names, while living nodes hold the job, for they would register it anew, and while a run of it is
// in flight.
func (c *Client) Remove(ctx context.Context, name string) error {
	l, err := c.open(ctx)
	if err != nil {
		return err
	}
	s, err := l.Job(ctx, name)
	if err != nil {
		return err
	}
	nodes, unclear, err := inspect.HeldBy(ctx, l, c.roster(), name)
	if err != nil {
		return err
	}
	if len(nodes) > 0 {
		return fmt.Errorf("%w: remove %s: held by %s; take the job out of their configuration and restart them", ErrRefused, name, generations.Some(nodes))
	}
	if unclear > 0 {
		return fmt.Errorf("%w: remove %s: what %d of the living nodes hold cannot be read by this version; use the newest one (a node that is up drops those which are gone)", ErrRefused, name, unclear)
	}
	if err := l.Remove(ctx, name); err != nil {
		return err
	}
	d, _ := jobs.ParseDefinition(s.Definition) // one that cannot be read names nobody to take leave of
	if d.After == "" {
		return nil
	}
	if err := l.Unfollow(ctx, d.After, name); err != nil {
		return fmt.Errorf("job %s is removed; that it followed %s is still noted, which does no harm: %w", name, d.After, err)
	}
	return nil
}

func author(s string) string { return cmp.Or(oneLine(s), nobody) }

// oneLine makes a text fit to be shown in a line.
func oneLine(s string) string {
	return strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "\uFFFD")
}
