package ops

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/ops/internal/wire"
)

// PauseOptions are who pauses a job, and why.
type PauseOptions struct {
	// Reason is for people who find the job paused. It is required; at most 256 bytes are kept.
	Reason string `json:"reason"`
	// Author is who pauses it; at most 64 bytes are kept. Default "unknown".
	Author string
	// Until is when the pause ends, in whole milliseconds. Default: when the job is resumed.
	Until time.Time `json:"until,omitempty"`
}

type pauseIn struct {
	named
	PauseOptions
}

var rowPause = row(&Operation[pauseIn, None]{
	Info: Info{Method: "POST", Path: "jobs/{name}/pause", Role: Operator, Audit: "jobs pause", Summary: "stop a job's schedule"},
	do: func(ctx context.Context, c *conn, in pauseIn) (None, error) {
		return done(pauseJob(ctx, c, in.Name, in.PauseOptions))
	},
	note: func(in pauseIn, _ None) Action {
		return Action{Target: in.Name, Author: in.Author, Reason: in.Reason, Detail: untilWords(in.Until)}
	},
})

// Pause pauses a job. Ticks that are not claimed yet, up to the end of the pause, are recorded as
// paused and never run. A run in flight goes on, and runs by hand still start. A repeated call
// replaces the end, the author and the reason. It returns ErrUnknownJob, and ErrRefused without a
// reason, for a text that is not UTF-8, or for an end in the past of Redis' clock.
func (c *Client) Pause(ctx context.Context, name string, o PauseOptions) error {
	_, err := call(ctx, c, rowPause, pauseIn{named{name}, o})
	return err
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
	l, err := c.Open(ctx)
	if err != nil {
		return err
	}
	return operate.Pause(ctx, l, name, ledger.Pause{Author: author(o.Author), Reason: wire.OneLine(reason), Until: until})
}

func untilWords(until time.Time) string {
	if until.IsZero() {
		return ""
	}
	return "until " + FormatTime(until)
}

var rowResume = row(&Operation[why, None]{
	Info: Info{Method: "POST", Path: "jobs/{name}/resume", Role: Operator, Audit: "jobs resume", Summary: "end a job's pause"},
	do:   func(ctx context.Context, c *conn, in why) (None, error) { return done(resumeJob(ctx, c, in.Name)) },
	note: func(in why, _ None) Action { return Action{Target: in.Name, Reason: in.Reason} },
})

// Resume ends a job's pause: ticks from now on run again. It changes nothing if the job is not
// paused. It returns ErrUnknownJob.
func (c *Client) Resume(ctx context.Context, name string) error {
	_, err := call(ctx, c, rowResume, why{named: named{name}})
	return err
}

func resumeJob(ctx context.Context, c *conn, name string) (err error) {
	l, err := c.Open(ctx)
	if err != nil {
		return err
	}
	return operate.Resume(ctx, l, name)
}

type rewindIn struct {
	named
	To     time.Time `json:"to" wire:"set"` // the instant to go back to
	Reason string    `json:"reason,omitempty"`
}

// Rewound names the tick with which a job begins again.
type Rewound struct {
	Tick time.Time `json:"tick" wire:"set"`
}

var rowRewind = row(&Operation[rewindIn, Rewound]{
	Info: Info{Method: "POST", Path: "jobs/{name}/rewind", Role: Operator, Audit: "jobs rewind", Summary: "run a job's past ticks again"},
	do: func(ctx context.Context, c *conn, in rewindIn) (Rewound, error) {
		if in.To.IsZero() {
			return Rewound{}, &InputError{"to is missing: the instant to go back to"}
		}
		tick, err := rewindJob(ctx, c, in.Name, in.To)
		return Rewound{tick}, err
	},
	note: func(in rewindIn, _ Rewound) Action {
		return Action{Target: in.Name, Reason: in.Reason, Detail: "to " + FormatTime(in.To)}
	},
})

// Rewind sets a job's cursor back to the first tick of its schedule at or after an instant, and
// returns that tick. Ticks from there on are claimed again under the job's catch-up policy, each as
// a later attempt than any recorded one. It returns ErrUnknownJob, and ErrRefused while a run of
// the job is in flight, for a job that follows another, for an instant before the recorded history
// or not before the cursor, and when the cursor keeps moving. If the clocks of a Cluster's masters
// differ by more than a second, it fails with both instants in the error.
func (c *Client) Rewind(ctx context.Context, name string, to time.Time) (tick time.Time, err error) {
	r, err := call(ctx, c, rowRewind, rewindIn{named: named{name}, To: to})
	return r.Tick, err
}

// rewindRounds is how often Rewind tries again when the cursor has moved meanwhile.
const rewindRounds = 5

func rewindJob(ctx context.Context, c *conn, name string, to time.Time) (tick time.Time, err error) {
	if _, err := instant("rewind "+name, to); err != nil {
		return time.Time{}, err
	}
	l, err := c.OpenAppend(ctx)
	if err != nil {
		return time.Time{}, err
	}
	var clockErr error
	for range rewindRounds {
		tick, word, err := rewind(ctx, l, name, to)
		if err == nil && word == operate.Rewound {
			return tick, nil
		}
		if err != nil && !errors.Is(err, ledger.ErrClock) {
			return time.Time{}, err
		}
		clockErr = err
	}
	if clockErr != nil { // the clocks of the job's master and of the control partition's differ, or Redis answers very late
		return time.Time{}, fmt.Errorf("rewind %s: %w", name, clockErr)
	}
	return time.Time{}, fmt.Errorf("%w: rewind %s: its cursor kept moving; pause the job first", ErrRefused, name)
}

func rewind(ctx context.Context, l *ledger.Ledger, name string, to time.Time) (time.Time, ledger.Status, error) {
	s, err := query.Job(ctx, l, name)
	if err == nil {
		err = s.Err
	}
	if err != nil {
		return time.Time{}, "", err
	}
	d, err := jobs.ParseDefinition(s.Definition)
	if err != nil {
		return time.Time{}, "", fmt.Errorf("rewind %s: %w", name, err)
	}
	if len(d.After) > 0 {
		return time.Time{}, "", fmt.Errorf("%w: rewind %s: it has no schedule, it follows %s; rewind that one", ErrRefused, name, strings.Join(d.After, ", "))
	}
	schedule, err := d.ParsedSchedule()
	if err != nil {
		return time.Time{}, "", fmt.Errorf("rewind %s: %w", name, err)
	}
	tick := schedule.Next(to.Add(-time.Nanosecond))
	if tick.IsZero() {
		return tick, "", fmt.Errorf("%w: rewind %s: %s has no tick from %s on", ErrRefused, name, schedule, to.UTC().Format(time.RFC3339))
	}
	if at := time.UnixMilli(s.Cursor); s.Cursor != 0 && s.HolderRun == "" && !tick.Before(at) {
		return tick, "", fmt.Errorf("%w: rewind %s to %s: its cursor is at %s, which is not later; a rewind only goes back", ErrRefused, name, FormatTime(tick), FormatTime(at))
	}
	now, err := l.Now(ctx)
	if err != nil {
		return tick, "", err
	}
	word, err := operate.Rewind(ctx, l, now.UnixMilli(), operate.RewindRequest{Job: name, Digest: s.Digest, From: s.Cursor, To: tick.UnixMilli()})
	return tick, word, err
}

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

type cancelBackfillIn struct {
	named
	Reason string `query:"reason"` // why, for the audit and the history
	author string
}

var rowCancelBackfill = row(&Operation[cancelBackfillIn, BackfillView]{
	Info: Info{Method: "DELETE", Path: "jobs/{name}/backfill", Role: Operator, Audit: "jobs backfill-cancel", Summary: "cancel the backfill of a job that is under way"},
	do: func(ctx context.Context, c *conn, in cancelBackfillIn) (BackfillView, error) {
		return cancelBackfill(ctx, c, in.Name, CancelOptions{Author: in.author, Reason: in.Reason})
	},
	note: func(in cancelBackfillIn, v BackfillView) Action {
		return Action{Target: in.Name, Author: in.author, Reason: in.Reason, Detail: v.ID}
	},
})

// CancelBackfill cancels the backfill of a job that is under way: no further tick of it gets a run.
// Its pending runs are recorded as cancelled, and those in flight end as Cancel ends them. It
// returns the backfill as it was then, without waiting for the ends. It returns ErrRefused when
// none is under way, and for a text that is not UTF-8.
func (c *Client) CancelBackfill(ctx context.Context, name string, o CancelOptions) (BackfillView, error) {
	return call(ctx, c, rowCancelBackfill, cancelBackfillIn{named{name}, o.Reason, o.Author})
}

func cancelBackfill(ctx context.Context, c *conn, name string, o CancelOptions) (v BackfillView, err error) {
	o.Author, o.Reason = c.by(o.Author, o.Reason)
	if err := utf8Only("cancel the backfill of "+name, o.Author, o.Reason); err != nil {
		return v, err
	}
	l, err := c.Open(ctx)
	if err != nil {
		return v, err
	}
	b, err := backfill.Cancel(ctx, l, name, author(o.Author), wire.OneLine(o.Reason))
	if err != nil {
		return v, err
	}
	return backfillView(b), nil
}
