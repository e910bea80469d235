package scheduler

import (
	"context"
	"encoding/json"
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
	Outcome string    // one of the words of RunView.Outcome
	Limit   int       // newest ones; 0 is all
}

// Runs lists runs in flight and recorded ones, newest tick first.
func (i *Inspector) Runs(ctx context.Context, f RunFilter) ([]RunView, error) {
	l, err := i.open(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	if f.Job != "" {
		if _, err := l.Job(ctx, f.Job); err != nil {
			return nil, err
		}
		names = []string{f.Job}
	} else if names, err = jobNames(ctx, l); err != nil {
		return nil, err
	}
	open, err := l.Open(ctx, names...)
	if err != nil {
		return nil, err
	}
	rows, _, err := l.History(ctx, names)
	if err != nil {
		return nil, err
	}
	views := f.pick(open, rows)
	slices.SortStableFunc(views, func(a, b RunView) int { return strings.Compare(tickOf(b), tickOf(a)) })
	if f.Limit > 0 && len(views) > f.Limit {
		views = views[:f.Limit]
	}
	return views, nil
}

func jobNames(ctx context.Context, l *ledger.Ledger) ([]string, error) {
	all, err := l.Jobs(ctx)
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.Job
	}
	return names, err
}

func (f RunFilter) pick(open []ledger.Lease, rows map[string][]ledger.Row) []RunView {
	views := []RunView{}
	add := func(v RunView) {
		if (f.Outcome == "" || f.Outcome == v.Outcome) && (f.Since.IsZero() || v.Tick != nil && !time.Time(*v.Tick).Before(f.Since)) {
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

func tickOf(v RunView) string {
	if v.Tick == nil {
		return ""
	}
	return v.Tick.String()
}

// Run finds one run by its id, or by the id it was asked for; ErrUnknownRun when neither a run in
// flight nor the history has it.
func (i *Inspector) Run(ctx context.Context, id string) (RunView, error) {
	l, err := i.open(ctx)
	if err != nil {
		return RunView{}, err
	}
	names, err := jobNames(ctx, l)
	if err != nil {
		return RunView{}, err
	}
	return find(ctx, l, names, id)
}

// find looks for a run of the named jobs: in flight first, so that one which ends meanwhile is
// found in the history.
func find(ctx context.Context, l *ledger.Ledger, names []string, id string) (RunView, error) {
	open, err := l.Open(ctx, names...)
	if err != nil {
		return RunView{}, err
	}
	for _, o := range open {
		if o.Run == id || o.Request == id {
			return openView(o), nil
		}
	}
	rows, _, err := l.History(ctx, names)
	if err != nil {
		return RunView{}, err
	}
	for _, name := range names {
		for _, r := range rows[name] {
			if r.Run == id || r.Request == id && id != "" {
				return rowView(r), nil
			}
		}
	}
	return RunView{}, fmt.Errorf("%w: %q; `runs list` shows what the history still has", ErrUnknownRun, id)
}

// TriggerOptions are the options of Trigger; the zero value is useful.
type TriggerOptions struct {
	// Payload is handed to the function; JSON, at most 64 KiB.
	Payload []byte
}

// Trigger enqueues one run of a job, now, beside its schedule, and returns the run's id.
func (i *Inspector) Trigger(ctx context.Context, name string, o TriggerOptions) (string, error) {
	if len(o.Payload) > 0 && !json.Valid(o.Payload) {
		return "", fmt.Errorf("%w: the payload is not JSON; quote a plain text: '\"text\"'", ErrRefused)
	}
	l, err := i.open(ctx)
	if err != nil {
		return "", err
	}
	id := newID()
	return id, l.Trigger(ctx, name, id, o.Payload)
}

// Wait returns the run when it has ended, or ctx's error.
func (i *Inspector) Wait(ctx context.Context, id string) (RunView, error) {
	v, err := i.Run(ctx, id)
	if err != nil {
		return v, err
	}
	l, err := i.open(ctx)
	if err != nil {
		return v, err
	}
	for {
		if v, err = find(ctx, l, []string{v.Job}, id); err != nil || v.Outcome != jobs.OutcomeRunning.String() {
			return v, err
		}
		if !pause(ctx, waitEvery) {
			return v, fmt.Errorf("wait for run %s: %w", id, context.Cause(ctx))
		}
	}
}
