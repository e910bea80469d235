package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/ledger"
)

// waitEvery is how often Wait looks.
const waitEvery = 100 * time.Millisecond

// RunFilter restricts Runs; zero fields do not.
type RunFilter struct {
	Job     string
	Since   time.Time // by tick
	Outcome string    // one of the words of RunView.Outcome, or OutcomePending
	Limit   int       // newest ones; 0 is all
}

// RunList is what List found.
type RunList struct {
	Runs      []RunView
	Matched   int // how many there are without the filter's Limit
	LeftAlone int // rows of these jobs that this version does not understand; Examine names them
}

// Runs lists runs in flight and recorded ones, newest tick first. One that ended before its tick, because
// it was cancelled, has its place by its end.
func (i *Inspector) Runs(ctx context.Context, f RunFilter) ([]RunView, error) {
	list, err := i.List(ctx, f)
	return list.Runs, err
}

// List is Runs, and says how much it left out. Where the history of a job cannot be read, the runs of the
// others come beside an error that names the job. They also come beside an UnheardError.
func (i *Inspector) List(ctx context.Context, f RunFilter) (RunList, error) {
	l, all, err := i.jobsOf(ctx, f.Job)
	left, err := beside(err)
	if err != nil {
		return RunList{}, err
	}
	names := namesOf(all)
	open, err := l.Open(ctx, names...)
	if err != nil {
		return RunList{}, err
	}
	rows, foreign, unread, err := histories(ctx, l, names)
	if err != nil {
		return RunList{}, err
	}
	views := f.pick(open, rows)
	slices.SortStableFunc(views, func(a, b RunView) int { return strings.Compare(placeOf(b), placeOf(a)) })
	list := RunList{Runs: views, Matched: len(views), LeftAlone: foreign}
	if f.Limit > 0 && len(views) > f.Limit {
		list.Runs = views[:f.Limit]
	}
	return list, errors.Join(i.standing(ctx, l, all, list.Runs), unread, left)
}

// jobsOf reads the job of that name, or all of them, as Ledger.Jobs does.
func (i *Inspector) jobsOf(ctx context.Context, name string) (*ledger.Ledger, []ledger.Stored, error) {
	l, err := i.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if name == "" {
		all, err := l.Jobs(ctx)
		return l, all, err
	}
	s, err := l.Job(ctx, name)
	return l, []ledger.Stored{s}, err
}

func namesOf(all []ledger.Stored) []string {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Job
	}
	return names
}

func (f RunFilter) pick(open []ledger.Lease, rows map[string][]ledger.Row) []RunView {
	views := []RunView{}
	add := func(v RunView) {
		if (f.Outcome == "" || f.Outcome == v.Outcome || f.Outcome == OutcomePending && v.Pending()) && (f.Since.IsZero() || v.Tick != nil && !time.Time(*v.Tick).Before(f.Since)) {
			views = append(views, v)
		}
	}
	for _, l := range open {
		if f.Job == "" || l.Job == f.Job {
			add(openView(l))
		}
	}
	for _, job := range slices.Sorted(maps.Keys(rows)) {
		for _, r := range slices.Backward(rows[job]) {
			add(rowView(r))
		}
	}
	return views
}

// placeOf is the instant by which a list is ordered: the tick, or the end if that was before.
func placeOf(v RunView) string {
	switch {
	case v.Tick == nil:
		return ""
	case v.Ended != nil && time.Time(*v.Ended).Before(time.Time(*v.Tick)):
		return v.Ended.String()
	}
	return v.Tick.String()
}

// Run finds one run by its id, or by the id it was asked for, and reads its output and payload. It
// returns ErrUnknownRun when neither a run in flight nor the history has it.
func (i *Inspector) Run(ctx context.Context, id string) (RunView, error) {
	l, err := i.open(ctx)
	if err != nil {
		return RunView{}, err
	}
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

// look finds a run in flight first, so that one which ends meanwhile is found in the history. A run that
// was handed back goes on under other ids and is found by the one asked for; of the attempts that keep
// this id the first is meant. The zero view says that there is none.
func look(ctx context.Context, l *ledger.Ledger, names []string, id string) (RunView, error) {
	if id == "" {
		return RunView{}, nil // nor have ranges
	}
	open, err := l.Open(ctx, names...)
	if err != nil {
		return RunView{}, err
	}
	var best RunView
	for _, o := range open {
		v := openView(o)
		v.keep(nil, o.Payload)
		if o.Run == id {
			return v, nil
		}
		if o.Request == id && (best.Run == "" || v.Attempt < best.Attempt) {
			best = v
		}
	}
	rows, _, unread, err := histories(ctx, l, names)
	if err != nil {
		return RunView{}, err
	}
	for _, name := range names {
		for _, r := range rows[name] {
			if r.Run == id {
				return rowView(r), nil
			}
			if r.Request == id && (best.Run == "" || r.Attempt < best.Attempt) {
				best = rowView(r)
			}
		}
	}
	if best.Run == "" && unread != nil { // it may be there
		return best, unread
	}
	return best, nil
}

// Wait returns the run, as Run does, when it has ended; one that may not start yet is waited for too.
// A run that was handed back is followed; a further attempt is a run of its own and is not. It returns
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
	for v.Outcome == jobs.OutcomeRunning.String() {
		pause(ctx, waitEvery)
		next, err := find(ctx, l, []string{v.Job}, id)
		if over := ended(ctx); over != nil { // in the middle of a read that looks as if Redis did not answer
			return v, fmt.Errorf("wait for run %s: %w", id, over)
		}
		if errors.Is(err, ErrUnknownRun) {
			next, err = trace(ctx, l, v, err)
			id = next.Run
		}
		if err != nil {
			return v, err
		}
		v = next
	}
	return v, enrich(ctx, l, &v)
}

// ended is the cause of ctx's end. A connection can notice its deadline a moment before ctx does.
func ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return context.Cause(ctx)
}

// trace finds what became of a run that was in flight and that nobody asked for: handed back, it goes
// on under the next id; one that was recorded instead of run is part of a range. Else it returns lost.
func trace(ctx context.Context, l *ledger.Ledger, v RunView, lost error) (RunView, error) {
	next, err := look(ctx, l, []string{v.Job}, ledger.Successor(v.Run))
	if err != nil || next.Run != "" && next.Attempt == v.Attempt {
		return next, err
	}
	rows, _, err := l.History(ctx, []string{v.Job})
	if err != nil {
		return RunView{}, err
	}
	for _, r := range slices.Backward(rows[v.Job]) {
		if r.Ranged && v.Tick != nil && r.Tick <= millis(time.Time(*v.Tick)) && millis(time.Time(*v.Tick)) <= r.Until {
			v.Outcome, v.Reason, v.Note, v.NotBefore, v.Ended, v.lease = r.Outcome.String(), r.Reason, r.Note, nil, stampOf(r.At), nil
			return v, nil
		}
	}
	return RunView{}, lost
}
