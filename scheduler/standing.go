package scheduler

import (
	"context"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// reasonPending begins the reason of a run that nobody was granted yet, and is all of it when nothing
// but a node's next look stands in its way.
const reasonPending = "pending"

// reasonLapsed is the reason of a run whose node has not renewed its lease in time. It may still be going.
const reasonLapsed = "lease lapsed, not reaped yet"

// OutcomePending asks, as the Outcome of a RunFilter, for those running runs that nobody was granted yet.
const OutcomePending = reasonPending

// Pending says that nobody was granted this run yet. Its outcome is "running" all the same.
func (v RunView) Pending() bool { return v.lease != nil && v.lease.Pending() }

// standing says how runs in flight stand: for how long they have been going, or what they wait for.
// all are the jobs, read before the runs.
func (i *Inspector) standing(ctx context.Context, l *ledger.Ledger, all []ledger.Stored, views []RunView) error {
	if !slices.ContainsFunc(views, func(v RunView) bool { return v.lease != nil }) {
		return nil
	}
	now, _, err := l.Time(ctx)
	if err != nil {
		return err
	}
	var waited []ledger.Stored
	for _, s := range all {
		if slices.ContainsFunc(views, func(v RunView) bool { return v.Pending() && v.Job == s.Job }) {
			waited = append(waited, s)
		}
	}
	held := map[string]holding{}
	if len(waited) > 0 {
		if held, err = i.held(ctx, all); err != nil {
			return err
		}
	}
	for k := range views {
		v := &views[k]
		at := slices.IndexFunc(waited, func(s ledger.Stored) bool { return s.Job == v.Job })
		switch {
		case v.lease == nil:
		case !v.Pending():
			v.goesOn(now.UnixMilli())
		case at >= 0:
			if why := waitsFor(*v.lease, waited[at], held[v.Job], now.UnixMilli()); why != "" {
				v.Reason = reasonPending + why
			}
		}
	}
	return nil
}

// goesOn is for a run that was granted, at Redis' time now, ms.
func (v *RunView) goesOn(now int64) {
	v.DurationMS = max(0, now-v.lease.Granted)
	if v.lease.Until < now && !v.Whole {
		v.Reason = reasonLapsed
	}
}

// waitsFor says what keeps a pending run from being granted at Redis' time now, ms: the end of a sentence
// that begins with "pending". What would keep it longest comes first.
func waitsFor(p ledger.Lease, s ledger.Stored, h holding, now int64) string {
	d, err := jobs.ParseDefinition(s.Definition)
	switch {
	case p.Granted > now:
		return " until " + stampOf(p.Granted).String()
	case s.Err != nil || err != nil:
		return ": job cannot be read by this version"
	case h.orphan:
		return ": no living node holds the job"
	case h.owner == "":
		return ": no living node can run the job"
	case (p.Holds || p.Trigger == jobs.TriggerAfter.String()) && p.Request == "" && p.Of == "" && s.Pause.Holds(now):
		// what somebody asked for, a run or an attempt, and the attempts of such a run do not wait for it
		return ": job is paused"
	case d.Overlap != jobs.OverlapAllow && s.Open != "" && s.Open != p.Run && s.Open != p.Of:
		return ": job is held by run " + s.Open
	}
	return ""
}

// chainMax is how often a further attempt that was handed back is looked for under its next id.
const chainMax = 16

// chainOf are the ids under which a run goes on that was handed back, and its further attempts, one after another.
func chainOf(run string) []string {
	ids := make([]string, chainMax)
	for i := range ids {
		run = ledger.Successor(run)
		ids[i] = run
	}
	return ids
}

// nextAttempt is the id of the attempt that followed a run, "" for none.
func nextAttempt(ctx context.Context, l *ledger.Ledger, v RunView) (string, error) {
	ids := chainOf(v.Run)
	open, err := l.InFlight(ctx, []string{v.Job}, ids...)
	if err != nil {
		return "", err
	}
	rows, _, err := l.History(ctx, []string{v.Job})
	if err != nil {
		return "", err
	}
	known := make(map[string]int)
	for _, r := range rows[v.Job] {
		known[r.Run] = r.Attempt
	}
	for _, o := range open {
		known[o.Run] = o.Attempt
	}
	for _, id := range ids {
		if n := known[id]; n > v.Attempt {
			return id, nil
		}
	}
	return "", nil
}

// lastOf is the newest tick of a job's rows, ms, 0 for none.
func lastOf(rows []ledger.Row) int64 {
	var last int64
	for _, r := range rows {
		last = max(last, r.Tick, r.Until)
	}
	return last
}

// lastTick is the latest tick accounted for, ms. A cursor that was set back stands 1 ms behind an
// instant that is none.
func lastTick(e ledger.Entry, j jobs.Job) int64 {
	if e.Last == 0 || e.Cursor != e.Last+1 {
		return e.Last
	}
	schedule, err := j.ParsedSchedule()
	if err != nil || schedule == nil {
		return e.Last
	}
	tick := schedule.Prev(time.UnixMilli(e.Cursor))
	if tick.IsZero() || tick.UnixMilli() < e.Base {
		return 0
	}
	return tick.UnixMilli()
}
