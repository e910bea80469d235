package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Wait looks after waitEvery at first, then after a tenth of the time it has waited, and at least each waitMost.
const (
	waitEvery = 100 * time.Millisecond
	waitMost  = time.Second
)

// Wait returns the run, as Run does, when it has ended; one that may not start yet is waited for too.
// A run that was handed back is followed; a further attempt is a run of its own and is not. It looks ten times a second at first, and
// after ten seconds once a second. It returns
// ctx's error, and ErrUnknownRun when the run is not there or was removed with its job.
func (i *Inspector) Wait(ctx context.Context, id string) (RunView, error) {
	v, err := i.Run(ctx, id)
	if err != nil {
		return v, err
	}
	l, err := i.open(ctx)
	if err != nil {
		return v, err
	}
	var waited time.Duration
	for v.Outcome == jobs.OutcomeRunning.String() {
		d := min(max(waited/10, waitEvery), waitMost)
		wait.For(ctx, d)
		waited += d
		next, now, err := again(ctx, l, v, id)
		if over := ended(ctx); over != nil { // in the middle of a read that looks as if Redis did not answer
			return v, fmt.Errorf("wait for run %s: %w", id, over)
		}
		if err != nil {
			return v, err
		}
		v, id = next, now
	}
	return v, enrich(ctx, l, &v)
}

// again looks at a run that was in flight, and was asked for by id: at its own record alone as long as it has one, then at
// what became of it. It also returns the id by which the run is known from now on.
func again(ctx context.Context, l *ledger.Ledger, v RunView, id string) (RunView, string, error) {
	next, err := inFlight(ctx, l, []string{v.Job}, v.Run)
	if err != nil || next.Run != "" {
		return next, id, err
	}
	next, err = find(ctx, l, []string{v.Job}, id)
	if errors.Is(err, ErrUnknownRun) {
		next, err = trace(ctx, l, v, err)
		id = next.Run
	}
	return next, id, err
}

// ended is the cause of ctx's end. A connection can notice its deadline a moment before ctx does.
func ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return context.Cause(ctx)
}

// cut is err, or the end of ctx if that is what ended a read which Redis was answering.
func cut(ctx context.Context, op string, err error) error {
	if over := ended(ctx); err != nil && over != nil && !errors.As(err, new(*UnheardError)) {
		return fmt.Errorf("%s: %w", op, over)
	}
	return err
}

// trace finds what became of a run that was in flight and that nobody asked for: handed back, once or more often, it goes
// on under one of the ids that follow; one that was recorded instead of run is part of a range. Else it returns lost.
func trace(ctx context.Context, l *ledger.Ledger, v RunView, lost error) (RunView, error) {
	ids := chainOf(v.Run)
	for range 2 { // handed back between the two parts of this read, it was in neither
		open, err := l.InFlight(ctx, []string{v.Job}, ids...)
		if err != nil {
			return RunView{}, err
		}
		for _, o := range open {
			if o.Attempt == v.Attempt {
				return openWhole(o), nil
			}
		}
	}
	rows, _, err := l.History(ctx, []string{v.Job})
	if err != nil {
		return RunView{}, err
	}
	for _, r := range rows[v.Job] {
		if r.Attempt == v.Attempt && slices.Contains(ids, r.Run) {
			return rowView(r), nil
		}
	}
	for _, r := range slices.Backward(rows[v.Job]) {
		if r.Ranged && v.Tick != nil && r.Tick <= work.Millis(time.Time(*v.Tick)) && work.Millis(time.Time(*v.Tick)) <= r.Until {
			v.Outcome, v.Reason, v.Note, v.NotBefore, v.Ended, v.lease = r.Outcome.String(), r.Reason, r.Note, nil, stampOf(r.At), nil
			return v, nil
		}
	}
	return RunView{}, lost
}
