package inspect

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Pending is, as a Filter's Outcome, that of a run which nobody was granted yet.
const Pending = "pending"

// Filter says which runs are listed; zero fields do not restrict it.
type Filter struct {
	Job     string
	Since   time.Time // by tick; of a range by its last
	Outcome string    // a jobs.Outcome's, or Pending
	Limit   int       // newest ones
}

// List is what a Filter lets through, the newest tick first.
type List struct {
	Runs      []Run
	Matched   int // how many there are without the Limit
	LeftAlone int // rows that this version does not understand
}

// List lists runs of the named jobs. It reads those in flight first, so that one which ends meanwhile is among the recorded ones. unread
// says which histories could not be read.
func (f Filter) List(ctx context.Context, l *ledger.Ledger, names []string) (list List, unread []error, err error) {
	open, err := l.Open(ctx, names...)
	if err != nil {
		return List{}, nil, err
	}
	p := picked{Filter: f}
	for k := range open {
		p.lease(&open[k])
	}
	err = l.EachHistory(ctx, names, "", func(h ledger.JobRows) bool {
		unread = append(unread, HistoryError(h.Job, h.Err))
		list.LeftAlone += h.Foreign
		for _, r := range slices.Backward(h.Rows) {
			p.row(r)
		}
		return true
	})
	p.trim()
	list.Matched = p.matched
	for _, r := range p.runs {
		list.Runs = append(list.Runs, r.Run)
	}
	return list, unread, err
}

// picked are the runs that a filter lets through, not many more than its Limit, in the order in which they came.
type picked struct {
	Filter
	runs    []placed
	matched int
	full    bool  // there are Limit runs already whose place is floor or a later one
	floor   int64 // ms
}

// placed is a run and the instant by which a list is ordered, ms: the tick, of a range its last, or the end if that was before. What has
// no tick comes last.
type placed struct {
	Run
	at int64
}

func (p *picked) lease(l *ledger.Lease) {
	running := p.Outcome == "" || p.Outcome == jobs.OutcomeRunning.String() || p.Outcome == Pending && l.Pending()
	if at := place(l.Tick, math.MaxInt64); running && (p.Job == "" || l.Job == p.Job) && p.takes(l.Tick, at) {
		p.add(placed{Run{Lease: l}, at})
	}
}

func (p *picked) row(r ledger.Row) {
	last := max(r.Tick, r.Until)
	if at := place(last, r.At); (p.Outcome == "" || p.Outcome == r.Outcome.String()) && p.takes(last, at) {
		p.add(placed{Run{Row: &r}, at})
	}
}

func place(tick, ended int64) int64 {
	if tick == 0 {
		return math.MinInt64
	}
	return min(tick, ended)
}

// takes counts what has last as its tick, of a range the last one, and says whether it may be among the Limit newest.
func (p *picked) takes(last, place int64) bool {
	if !p.Since.IsZero() && (last == 0 || last < work.Millis(p.Since)) {
		return false
	}
	p.matched++
	return !p.full || place > p.floor
}

// listSpare is how many runs a list may have too many before it is trimmed.
const listSpare = 256

func (p *picked) add(r placed) {
	p.runs = append(p.runs, r)
	if p.Limit > 0 && (len(p.runs)-listSpare)/2 >= p.Limit { // twice a huge one would be negative
		p.trim()
	}
}

// trim puts the newest first and drops what is beyond Limit. Of equal places those come first that came first.
func (p *picked) trim() {
	slices.SortStableFunc(p.runs, func(a, b placed) int { return cmp.Compare(b.at, a.at) })
	if p.Limit > 0 && len(p.runs) >= p.Limit {
		clear(p.runs[p.Limit:])
		p.runs, p.full = p.runs[:p.Limit], true
		p.floor = p.runs[p.Limit-1].at
	}
}
