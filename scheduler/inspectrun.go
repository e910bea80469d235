package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Run finds one run by its id, or by the id it was asked for, and reads its output and payload. It
// returns ErrUnknownRun when neither a run in flight nor the history has it.
func (i *Inspector) Run(ctx context.Context, id string) (RunView, error) {
	l, err := i.open(ctx)
	if err != nil {
		return RunView{}, err
	}
	v, err := i.run(ctx, l, id)
	return v, cut(ctx, "look for run "+id, err)
}

func (i *Inspector) run(ctx context.Context, l *ledger.Ledger, id string) (RunView, error) {
	v, all, err := locate(ctx, l, id)
	if err != nil {
		return RunView{}, err
	}
	one := []RunView{v}
	if err := i.standing(ctx, l, all, one); err != nil {
		return v, err
	}
	err = enrich(ctx, l, &one[0])
	return one[0], err
}

// locate finds a run among those of all jobs. One that no master has which answers may be at another one.
func locate(ctx context.Context, l *ledger.Ledger, id string) (v RunView, all []ledger.Stored, err error) {
	all, err = l.Jobs(ctx)
	left, err := beside(err)
	if err != nil {
		return RunView{}, nil, err
	}
	v, err = find(ctx, l, namesOf(all), id)
	if left != nil && errors.Is(err, ErrUnknownRun) {
		err = fmt.Errorf("run %q is not among those that can be read: %w", id, left)
	}
	return v, all, err
}

// enrich reads what is kept beside a run, what followed it, and who wants it ended.
func enrich(ctx context.Context, l *ledger.Ledger, v *RunView) error {
	if v.Outcome == jobs.OutcomeRunning.String() {
		cancels, err := l.Cancels(ctx, l.Partition(v.Job))
		for _, c := range cancels {
			if c.Run == v.Run {
				v.Note = cancelNote(c)
			}
		}
		return err
	}
	output, payload, err := l.Kept(ctx, v.Job, v.Run)
	if err != nil {
		return err
	}
	v.keep(output, payload)
	v.NextAttempt, err = nextAttempt(ctx, l, *v)
	return err
}

func cancelNote(c ledger.Cancel) string {
	if c.Author == "" {
		return "a newer tick is to replace it"
	}
	note := "to be cancelled by " + c.Author
	if c.Reason != "" {
		note += ": " + c.Reason
	}
	return note
}

// find looks for a run of the named jobs. It looks again before it says that there is none: a run that
// was handed back between two of its reads was in neither.
func find(ctx context.Context, l *ledger.Ledger, names []string, id string) (RunView, error) {
	for range 2 {
		if v, err := look(ctx, l, names, id); err != nil || v.Run != "" {
			return v, err
		}
	}
	return RunView{}, fmt.Errorf("%w: %q; `runs list` shows what the history still has", ErrUnknownRun, id)
}

// look finds a run by its id, or by the id it was asked for. One in flight is looked for first, so that one which ends
// meanwhile is found in the history. The zero view says that there is none.
func look(ctx context.Context, l *ledger.Ledger, names []string, id string) (v RunView, err error) {
	if id == "" {
		return RunView{}, nil // nor have ranges
	}
	if v, err = inFlight(ctx, l, names, id); err != nil || v.Run != "" {
		return v, err
	}
	var job string
	var unread []error
	err = l.EachHistory(ctx, names, id, func(h ledger.JobRows) bool {
		unread = append(unread, historyError(h.Job, h.Err))
		for _, r := range h.Rows {
			if r.Run == id {
				v = rowView(r)
			} else if r.Request == id {
				job = h.Job
			}
		}
		return v.Run == "" && job == ""
	})
	if err != nil || v.Run != "" {
		return v, err
	}
	if job == "" {
		job, err = askedOf(ctx, l, names, id)
	}
	switch {
	case err != nil:
		return RunView{}, err
	case job != "":
		return lookAsked(ctx, l, job, id)
	}
	return RunView{}, errors.Join(unread...) // it may be there
}

// inFlight finds a run in flight by its own id.
func inFlight(ctx context.Context, l *ledger.Ledger, names []string, id string) (RunView, error) {
	open, err := l.InFlight(ctx, names, id)
	if err != nil || len(open) == 0 {
		return RunView{}, err
	}
	return openWhole(open[0]), nil
}

func openWhole(l ledger.Lease) RunView {
	v := openView(l)
	v.keep(nil, l.Payload)
	return v
}

// askedOf is the job of a run in flight that was asked for by this id and goes on under another one, "" for none.
func askedOf(ctx context.Context, l *ledger.Ledger, names []string, id string) (string, error) {
	open, err := l.Open(ctx, names...)
	if at := slices.IndexFunc(open, func(o ledger.Lease) bool { return o.Run == id || o.Request == id }); at >= 0 {
		return open[at].Job, err
	}
	return "", err
}

// lookAsked finds a run of a job by its own id, or by the one it was asked for: handed back, it goes on under other ids; of
// the attempts that keep this id the first is meant.
func lookAsked(ctx context.Context, l *ledger.Ledger, job, id string) (RunView, error) {
	open, err := l.Open(ctx, job)
	if err != nil {
		return RunView{}, err
	}
	var best RunView
	for _, o := range open {
		if o.Run == id {
			return openWhole(o), nil
		}
		if o.Request == id && (best.Run == "" || o.Attempt < best.Attempt) {
			best = openWhole(o)
		}
	}
	rows, _, err := l.History(ctx, []string{job})
	if err != nil {
		return RunView{}, historyError(job, err)
	}
	for _, r := range rows[job] {
		if r.Run == id {
			return rowView(r), nil
		}
		if r.Request == id && (best.Run == "" || r.Attempt < best.Attempt) {
			best = rowView(r)
		}
	}
	return best, nil
}
