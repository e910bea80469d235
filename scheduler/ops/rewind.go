package ops

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// rewindRounds is how often Rewind tries again when the cursor has moved meanwhile.
const rewindRounds = 5

func rewindJob(ctx context.Context, c *conn, name string, to time.Time) (tick time.Time, err error) {
	if _, err := instant("rewind "+name, to); err != nil {
		return time.Time{}, err
	}
	l, err := c.openAppend(ctx)
	if err != nil {
		return time.Time{}, err
	}
	var clockErr error
	for range rewindRounds {
		tick, word, err := rewind(ctx, l, name, to)
		if err == nil && word == ledger.Rewound {
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
	s, err := l.Job(ctx, name)
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
	word, err := l.Rewind(ctx, now.UnixMilli(), ledger.Rewind{Job: name, Digest: s.Digest, From: s.Cursor, To: tick.UnixMilli()})
	return tick, word, err
}
