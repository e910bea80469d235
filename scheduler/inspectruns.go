package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// RunFilter restricts Runs; zero fields do not.
type RunFilter struct {
	Job     string
	Since   time.Time // by tick; of a range by its last
	Outcome string    // one of the words of RunView.Outcome, or OutcomePending; any other is refused
	Limit   int       // newest ones; 0 is all
}

// RunList is what List found.
type RunList struct {
	Runs      []RunView
	Matched   int // how many there are without the filter's Limit
	LeftAlone int // rows of these jobs that this version does not understand; Examine names them
}

// Runs lists runs in flight and recorded ones, newest tick first. One that ended before its tick, because
// it was cancelled, has its place by its end, and a range has it by its last tick.
func (i *Inspector) Runs(ctx context.Context, f RunFilter) ([]RunView, error) {
	list, err := i.List(ctx, f)
	return list.Runs, err
}

// List is Runs, and says how much it left out. Where the history of a job cannot be read, the runs of the
// others come beside an error that names the job. They also come beside an UnheardError. It returns ErrRefused
// for an outcome that is none.
func (i *Inspector) List(ctx context.Context, f RunFilter) (RunList, error) {
	if err := f.check(); err != nil {
		return RunList{}, err
	}
	l, all, err := i.jobsOf(ctx, f.Job)
	left, err := beside(err)
	if err != nil {
		return RunList{}, err
	}
	list, unread, err := f.list(ctx, l, namesOf(all))
	if err != nil {
		return RunList{}, cut(ctx, "list runs", err)
	}
	err = cut(ctx, "list runs", i.standing(ctx, l, all, list.Runs))
	return list, errors.Join(append(unread, err, left)...)
}

func (f RunFilter) check() error {
	if f.Outcome == "" || f.Outcome == OutcomePending {
		return nil
	}
	if err := new(jobs.Outcome).UnmarshalText([]byte(f.Outcome)); err != nil {
		return fmt.Errorf("%w: list runs: %w, or %s", ErrRefused, err, OutcomePending)
	}
	return nil
}

// list reads the runs in flight first, so that one which ends meanwhile is among the recorded ones.
func (f RunFilter) list(ctx context.Context, l *ledger.Ledger, names []string) (list RunList, unread []error, err error) {
	open, err := l.Open(ctx, names...)
	if err != nil {
		return RunList{}, nil, err
	}
	p := picked{RunFilter: f, views: []RunView{}}
	for _, o := range open {
		p.open(o)
	}
	err = l.EachHistory(ctx, names, "", func(h ledger.JobRows) bool {
		unread = append(unread, historyError(h.Job, h.Err))
		list.LeftAlone += h.Foreign
		for _, r := range slices.Backward(h.Rows) {
			p.row(r)
		}
		return true
	})
	p.trim()
	list.Runs, list.Matched = p.views, p.matched
	return list, unread, err
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

// picked are the views of what a filter lets through, not many more than its Limit, in the order in which they came.
type picked struct {
	RunFilter
	views   []RunView
	matched int
	full    bool  // there are Limit views already whose place is floor or a later one
	floor   int64 // ms
}

func (p *picked) open(l ledger.Lease) {
	v := openView(l)
	if (p.Job == "" || l.Job == p.Job) && (p.Outcome == "" || p.Outcome == v.Outcome || p.Outcome == OutcomePending && v.Pending()) {
		p.add(l.Tick, placeOf(v), func() RunView { return v })
	}
}

func (p *picked) row(r ledger.Row) {
	if p.Outcome == "" || p.Outcome == r.Outcome.String() {
		last := max(r.Tick, r.Until)
		p.add(last, place(last, r.At), func() RunView { return rowView(r) })
	}
}

// add takes what has last as its tick, of a range the last one.
func (p *picked) add(last, place int64, view func() RunView) {
	if !p.Since.IsZero() && (last == 0 || last < work.Millis(p.Since)) {
		return
	}
	p.matched++
	if p.full && place <= p.floor {
		return
	}
	p.views = append(p.views, view())
	if p.Limit > 0 && (len(p.views)-listSpare)/2 >= p.Limit { // twice a huge one would be negative
		p.trim()
	}
}

// trim puts the newest first and drops what is beyond Limit. Of equal places those come first that came first.
func (p *picked) trim() {
	slices.SortStableFunc(p.views, func(a, b RunView) int { return cmp.Compare(placeOf(b), placeOf(a)) })
	if p.Limit > 0 && len(p.views) >= p.Limit {
		clear(p.views[p.Limit:])
		p.views, p.full = p.views[:p.Limit], true
		p.floor = placeOf(p.views[p.Limit-1])
	}
}

// listSpare is how many views a list may have too many before it is trimmed.
const listSpare = 256

// place is the instant by which a list is ordered, ms: the tick, of a range its last, or the end if that was before. What has no
// tick comes last.
func place(tick, ended int64) int64 {
	switch {
	case tick == 0:
		return math.MinInt64
	case ended != 0:
		return min(tick, ended)
	}
	return tick
}

func placeOf(v RunView) int64 {
	var tick, ended int64
	if v.Tick != nil {
		tick = work.Millis(time.Time(*v.Tick))
	}
	if v.Until != nil {
		tick = max(tick, work.Millis(time.Time(*v.Until)))
	}
	if v.Ended != nil {
		ended = work.Millis(time.Time(*v.Ended))
	}
	return place(tick, ended)
}
