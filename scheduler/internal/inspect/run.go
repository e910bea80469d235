// Package inspect finds a run's records for people: in flight, recorded, or under another id after
// a hand-back. It also finds the cause of a run's wait, and the nodes that hold its job.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// Run is a run in flight, with a Lease, or a recorded run or a range of ticks, with a Row.
type Run struct {
	Lease *ledger.Run
	Row   *ledger.Row
}

// ID is the run's own id; "" of a range, and when there is no run.
func (r Run) ID() string {
	switch {
	case r.Lease != nil:
		return r.Lease.ID
	case r.Row != nil:
		return r.Row.Run
	}
	return ""
}

// Job is the run's job.
func (r Run) Job() string {
	if r.Lease != nil {
		return r.Lease.Job
	}
	return r.Row.Job
}

// attempt is the how-many-th grant of its tick the run is.
func (r Run) attempt() int {
	if r.Lease != nil {
		return r.Lease.Attempt
	}
	return r.Row.Attempt
}

// Find finds a run of the named jobs by its own id, or by the id of its request: after a hand-back,
// a run goes on under other ids; of several attempts with the request's id, Find returns the first.
// It reads again before it returns ErrUnknownRun: a run that was handed back between two of its
// reads was in neither.
func Find(ctx context.Context, l *ledger.Ledger, names []string, id string) (Run, error) {
	for range 2 {
		if r, err := look(ctx, l, names, id); err != nil || r.ID() != "" {
			return r, err
		}
	}
	return Run{}, fmt.Errorf("%w: %q; `runs list` shows what the history still has", ledger.ErrUnknownRun, id)
}

// look reads runs in flight before recorded ones, so that a run which ends meanwhile is found in
// the history.
func look(ctx context.Context, l *ledger.Ledger, names []string, id string) (found Run, err error) {
	if id == "" {
		return Run{}, nil // nor have ranges
	}
	if found, err = inFlight(ctx, l, names, id); err != nil || found.ID() != "" {
		return found, err
	}
	take := func(r Run, request string) {
		if r.ID() == id || request == id && found.ID() != id && (found.ID() == "" || r.attempt() < found.attempt()) {
			found = r
		}
	}
	open, err := query.InFlight(ctx, l, names...)
	if err != nil {
		return Run{}, err
	}
	for k := range open {
		take(Run{Lease: &open[k]}, open[k].Request)
	}
	if found.ID() != "" {
		names = []string{found.Job()}
	}
	var unread []error
	err = query.EachHistory(ctx, l, names, id, func(h query.JobRows) bool {
		unread = append(unread, HistoryError(h.Job, h.Err))
		for k := range h.Rows {
			take(Run{Row: &h.Rows[k]}, h.Rows[k].Request)
		}
		return found.ID() == ""
	})
	if err != nil || found.ID() != "" {
		return found, err
	}
	return Run{}, errors.Join(unread...) // it may be there
}

// inFlight finds a run in flight by its own id.
func inFlight(ctx context.Context, l *ledger.Ledger, names []string, id string) (Run, error) {
	open, err := query.FindInFlight(ctx, l, names, id)
	if err != nil || len(open) == 0 {
		return Run{}, err
	}
	return Run{Lease: &open[0]}, nil
}

// HistoryError is why the history of a job could not be read: Redis gave no answer, or an
// unreadable one.
func HistoryError(job string, err error) error {
	if err == nil || errors.Is(err, locking.ErrUnreachable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("history of job %s: %w; `ledger verify` names what is wrong", job, err)
}

// Refresh reads a run that was in flight, and was requested by id: at its own record alone as long
// as it has one, then at its successor or history row. It also returns the id by which the run is
// known from now on.
func Refresh(ctx context.Context, l *ledger.Ledger, was ledger.Run, id string) (Run, string, error) {
	now, err := inFlight(ctx, l, []string{was.Job}, was.ID)
	if err != nil || now.ID() != "" {
		return now, id, err
	}
	now, err = Find(ctx, l, []string{was.Job}, id)
	if errors.Is(err, ledger.ErrUnknownRun) {
		now, err = trace(ctx, l, was, err)
		id = now.ID()
	}
	return now, id, err
}

// trace finds the later record of a scheduled run that was in flight: handed back, once or more
// often, the run goes on under one of the following ids; a tick that was recorded instead of run is
// part of a range. Else it returns lost.
func trace(ctx context.Context, l *ledger.Ledger, was ledger.Run, lost error) (Run, error) {
	ids := successors(was.ID)
	for range 2 { // handed back between the two parts of this read, it was in neither
		open, err := query.FindInFlight(ctx, l, []string{was.Job}, ids...)
		if err != nil {
			return Run{}, err
		}
		for k := range open {
			if open[k].Attempt == was.Attempt {
				return Run{Lease: &open[k]}, nil
			}
		}
	}
	history, _, err := query.History(ctx, l, []string{was.Job})
	if err != nil {
		return Run{}, err
	}
	rows := history[was.Job]
	for k := range rows {
		if rows[k].Attempt == was.Attempt && slices.Contains(ids, rows[k].Run) {
			return Run{Row: &rows[k]}, nil
		}
	}
	for _, r := range slices.Backward(rows) {
		if r.Ranged && r.Tick <= was.Tick && was.Tick <= r.Until {
			return Run{Row: &ledger.Row{
				Run: was.ID, Job: was.Job, Tick: was.Tick, Shard: was.Shard, Shards: was.Shards, Attempt: was.Attempt, TickID: was.TickID, Param: was.Param,
				Trigger: was.Trigger, Outcome: r.Outcome, Reason: r.Reason, Note: r.Note, At: r.At,
			}}, nil
		}
	}
	return Run{}, lost
}

// chainMax is how often a further attempt that was handed back is looked for under its next id.
const chainMax = 16

// successors are the ids of a run after each hand-back, and of its further attempts, in order.
func successors(run string) []string {
	ids := make([]string, chainMax)
	for i := range ids {
		run = ledger.NextAttemptID(run)
		ids[i] = run
	}
	return ids
}

// NextAttempt is the id of the attempt that followed a recorded run, "" for none.
func NextAttempt(ctx context.Context, l *ledger.Ledger, was ledger.Row) (string, error) {
	ids := successors(was.Run)
	open, err := query.FindInFlight(ctx, l, []string{was.Job}, ids...)
	if err != nil {
		return "", err
	}
	rows, _, err := query.History(ctx, l, []string{was.Job})
	if err != nil {
		return "", err
	}
	attempts := make(map[string]int)
	for _, r := range rows[was.Job] {
		attempts[r.Run] = r.Attempt
	}
	for _, o := range open {
		attempts[o.ID] = o.Attempt
	}
	if k := slices.IndexFunc(ids, func(id string) bool { return attempts[id] > was.Attempt }); k >= 0 {
		return ids[k], nil
	}
	return "", nil
}
