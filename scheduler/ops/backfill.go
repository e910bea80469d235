package ops

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

const (
	// backfillMost bounds the ticks of a backfill.
	backfillMost = 10_000
	// backfillShown is how many ticks a plan shows at each end.
	backfillShown = 3
)

// BackfillOptions are the range of a backfill, and how its ticks are run. From and To are required.
type BackfillOptions struct {
	// From and To are the ends of the range, in whole milliseconds. A tick at either of them belongs
	// to it. To must not lie in the future of Redis' clock.
	From time.Time `json:"from" wire:"set"`
	To   time.Time `json:"to" wire:"set"`
	// Parallel is how many of the backfill's runs wait or go at a time, 1 to 100. With 1 each tick
	// starts when the one before it has ended. Default 1.
	Parallel int `json:"parallel,omitempty"`
	// DryRun counts the ticks and begins nothing.
	DryRun bool `json:"dry_run,omitempty"`
	// Author is the person who wants it; at most 64 bytes are kept. Default "unknown".
	Author string
}

// BackfillPlan is the backfill that was begun or, in a dry run, would be.
type BackfillPlan struct {
	ID    string      `json:"id"` // "" for a dry run
	Ticks int64       `json:"ticks"`
	First []time.Time `json:"first"` // the first ticks, three at most
	Last  []time.Time `json:"last"`  // the last ticks, in order, without the ticks of First
}

type backfillIn struct {
	named
	BackfillOptions
	Reason string `json:"reason,omitempty"`
}

var rowBackfill = row(&Operation[backfillIn, BackfillPlan]{
	Info: Info{Method: "POST", Path: "jobs/{name}/backfill", Role: Operator, Audit: "jobs backfill", Summary: "run the ticks that a job has in a range, beside its schedule"},
	do: func(ctx context.Context, c *conn, in backfillIn) (BackfillPlan, error) {
		return beginBackfill(ctx, c, in.Name, in.BackfillOptions)
	},
	dry: func(in backfillIn) bool { return in.DryRun },
	note: func(in backfillIn, plan BackfillPlan) Action {
		return Action{Target: in.Name, Author: in.Author, Reason: in.Reason, Detail: in.detail(plan)}
	},
})

// Backfill runs the ticks that a job's schedule has in a range, each once, in their order, whether
// they ran before or not, and moves no cursor. Its runs have the trigger backfill and the tick's
// instant. They neither hold the job nor wait for a run that does; while the job is paused they
// wait. A node that holds the job takes the backfill on, and it goes on when that node dies.
//
// Backfill returns ErrUnknownJob, and ErrRefused for a job that follows another, a range that is
// empty, has no tick or more than 10,000, or lies in the future, a Parallel out of range, and while
// another backfill of the job is under way.
func (c *Client) Backfill(ctx context.Context, name string, o BackfillOptions) (BackfillPlan, error) {
	return call(ctx, c, rowBackfill, backfillIn{named: named{name}, BackfillOptions: o})
}

func beginBackfill(ctx context.Context, c *conn, name string, o BackfillOptions) (plan BackfillPlan, err error) {
	o.Author, _ = c.by(o.Author, "")
	if err := o.check("backfill " + name); err != nil {
		return BackfillPlan{}, err
	}
	l, err := c.Open(ctx)
	if err != nil {
		return BackfillPlan{}, err
	}
	if o.Parallel == 0 {
		o.Parallel = 1
	}
	for range rewindRounds {
		s, err := query.Job(ctx, l, name)
		if err == nil {
			err = s.Err
		}
		if err != nil {
			return BackfillPlan{}, err
		}
		now, err := l.Now(ctx)
		if err != nil {
			return BackfillPlan{}, err
		}
		plan, err := planBackfill(name, s.Definition, o, now)
		if err != nil || o.DryRun {
			return plan, err
		}
		plan.ID = newID()
		b := ledger.Backfill{
			ID: plan.ID, Job: name, From: o.From.UnixMilli(), To: o.To.UnixMilli(), Parallel: o.Parallel, Total: plan.Ticks, Author: author(o.Author),
		}
		word, err := backfill.Begin(ctx, l, b, s.Digest)
		if err != nil {
			return BackfillPlan{}, err
		}
		if word != operate.Elsewhere {
			return plan, nil
		}
	}
	return BackfillPlan{}, fmt.Errorf("%w: backfill %s: its definition kept changing; try again when the nodes agree on one", ErrRefused, name)
}

// check refuses options that fit no job.
func (o BackfillOptions) check(op string) error {
	if err := utf8Only(op, o.Author, ""); err != nil {
		return err
	}
	for _, end := range []struct {
		name string
		at   time.Time
	}{{"from", o.From}, {"to", o.To}} {
		if end.at.IsZero() {
			return &InputError{fmt.Sprintf("%s: %s is missing: both ends of the range are needed", op, end.name)}
		}
		if _, err := instant(op+": "+end.name, end.at); err != nil {
			return err
		}
	}
	if o.From.After(o.To) {
		return fmt.Errorf("%w: %s: from is %s, after to, %s; give the earlier end as from", ErrRefused, op, FormatTime(o.From), FormatTime(o.To))
	}
	if o.Parallel < 0 || o.Parallel > ledger.BackfillParallel {
		return fmt.Errorf("%w: %s: parallel is %d; from 1 to %d", ErrRefused, op, o.Parallel, ledger.BackfillParallel)
	}
	return nil
}

// planBackfill counts the ticks of a range.
func planBackfill(name string, definition []byte, o BackfillOptions, now time.Time) (plan BackfillPlan, err error) {
	op := "backfill " + name
	d, err := jobs.ParseDefinition(definition)
	if err != nil {
		return plan, fmt.Errorf("%s: %w: %w", op, ErrUnknownFormat, err)
	}
	if len(d.After) > 0 {
		return plan, fmt.Errorf("%w: %s: it has no schedule, it follows %s; run it by hand with `jobs run`", ErrRefused, op, strings.Join(d.After, ", "))
	}
	schedule, err := d.ParsedSchedule()
	if err != nil {
		return plan, fmt.Errorf("%s: %w: %w", op, ErrUnknownFormat, err)
	}
	if o.To.After(now) {
		return plan, fmt.Errorf("%w: %s: to is %s, and it is %s by Redis' clock; give an instant that is over: later ticks run by themselves",
			ErrRefused, op, FormatTime(o.To), FormatTime(now))
	}
	from := o.From.Truncate(time.Millisecond)
	n, last := schedule.Count(from, o.To.Truncate(time.Millisecond).Add(time.Millisecond))
	plan.Ticks = int64(n)
	switch {
	case n == 0:
		return plan, fmt.Errorf("%w: %s: %s has no tick from %s to %s; `jobs get %s` shows its next ones", ErrRefused, op, schedule, FormatTime(o.From), FormatTime(o.To), name)
	case n > backfillMost:
		return plan, fmt.Errorf("%w: %s: %d ticks from %s to %s; at most %d, so split the range", ErrRefused, op, n, FormatTime(o.From), FormatTime(o.To), backfillMost)
	}
	plan.First, plan.Last = []time.Time{}, []time.Time{}
	for at, shown := from.Add(-time.Nanosecond), 0; shown < min(n, 2*backfillShown); shown++ {
		if shown == backfillShown { // the last ticks are found from the end
			at = lastTicks(schedule, from, last, min(n-backfillShown, backfillShown))
		}
		if at = schedule.Next(at); shown < backfillShown {
			plan.First = append(plan.First, at)
		} else {
			plan.Last = append(plan.Last, at)
		}
	}
	return plan, nil
}

// lastTicks is an instant behind which a schedule has n ticks up to last. It has more from from on.
func lastTicks(s *jobs.Schedule, from, last time.Time, n int) time.Time {
	at := last
	for range n - 1 {
		_, at = s.Count(from, at)
	}
	return at.Add(-time.Nanosecond)
}

// detail is the request in words.
func (o BackfillOptions) detail(plan BackfillPlan) string {
	words := fmt.Sprintf("from %s to %s, parallel %d", FormatTime(o.From), FormatTime(o.To), max(1, o.Parallel))
	if plan.ID == "" {
		return words
	}
	return fmt.Sprintf("%s: %d ticks, %s", plan.ID, plan.Ticks, words)
}

// BackfillView is a backfill, as tools and the API show it. See Encode for its JSON.
type BackfillView struct {
	ID       string                 `json:"id"`
	Job      string                 `json:"job"`
	State    string                 `json:"state"` // going; cancelled, also while runs of it have not ended; done
	From     time.Time              `json:"from" wire:"set"`
	To       time.Time              `json:"to" wire:"set"`
	Parallel int                    `json:"parallel"`
	Ticks    int64                  `json:"ticks"`            // in the range when it began
	Ended    int64                  `json:"ended"`            // ticks that have ended
	Counts   map[jobs.Outcome]int64 `json:"counts"`           // the same by outcome
	Running  int                    `json:"running"`          // ticks whose runs wait or go
	Next     time.Time              `json:"next,omitempty"`   // no tick from here on has a run yet; absent when all have
	Began    time.Time              `json:"began" wire:"set"` // when it was requested
	ETA      time.Time              `json:"eta,omitempty"`    // when it ends if it goes on as it did; absent before the first tick has ended
	End      time.Time              `json:"end,omitempty"`    // when it ended, with all its runs
	Author   string                 `json:"author"`
	By       string                 `json:"by,omitempty"`     // who cancelled it
	Reason   string                 `json:"reason,omitempty"` // why it was cancelled
}

type backfillsIn struct {
	Job string `query:"job"` // only this job
}

var rowBackfills = row(&Operation[backfillsIn, []BackfillView]{
	Info: Info{Method: "GET", Path: "backfills", Role: Viewer, Summary: "the backfills that are under way, and the last ended one of each job"},
	do: func(ctx context.Context, c *conn, in backfillsIn) ([]BackfillView, error) {
		return listBackfills(ctx, c, in.Job)
	},
})

// ListBackfills lists the running backfills and the last ended one of each job; of one job or, with
// "", of all. It returns ErrUnknownJob for an unknown job. Records in an unknown format are counted
// in an error that wraps ErrUnknownFormat and comes with the other backfills.
func (c *Client) ListBackfills(ctx context.Context, name string) ([]BackfillView, error) {
	return call(ctx, c, rowBackfills, backfillsIn{name})
}

func listBackfills(ctx context.Context, c *conn, name string) ([]BackfillView, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return nil, err
	}
	if name != "" {
		if _, err := query.Job(ctx, l, name); err != nil {
			return nil, err
		}
	}
	all, foreign, err := backfill.List(ctx, l, name)
	if err != nil {
		return nil, err
	}
	views := []BackfillView{}
	for _, b := range all {
		views = append(views, backfillView(b))
	}
	return views, leftOut("backfills", foreign)
}

func backfillView(b ledger.Backfill) BackfillView {
	v := BackfillView{
		ID: b.ID, Job: b.Job, State: b.State, From: timeOf(b.From), To: timeOf(b.To), Parallel: b.Parallel,
		Ticks: b.Total, Counts: make(map[jobs.Outcome]int64), Running: len(b.Going), Next: timeOf(b.Next), Began: timeOf(b.Began),
		End: timeOf(b.Ended), Author: b.Author, By: b.By, Reason: b.Reason,
	}
	for outcome, n := range b.Counts {
		v.Counts[outcome] = n
		v.Ended += n
	}
	if left := b.Total - v.Ended; b.State == ledger.BackfillGoing && v.Ended > 0 && left > 0 {
		v.ETA = timeOf(b.Looked + int64(float64(b.Looked-b.Began)*float64(left)/float64(v.Ended)))
	}
	return v
}
