package lane

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/jobs/cron"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// eachMost is how many ticks that did not run are delivered one by one, the newest of an event.
// Older ticks are recorded as skipped.
const eachMost = 100

// gapsMost is how many gaps of these older ticks one call takes.
const gapsMost = 100

// rootsMost bounds the chain of jobs before a follower.
const rootsMost = 1000

// deliverTo sends an event to one follower and returns its answer.
func (r *relay) deliverTo(ctx context.Context, calls *masterCalls, e ledger.Event, job string) (status ledger.Status) {
	calls.ask(ctx, job, func(ctx context.Context) (err error) {
		status, err = follow.Relay(ctx, r.home.ledger, e, job)
		return err
	})
	return status
}

// deliverTicks sends the ticks of an event to one follower: the older ones as the gaps between its rows, the newest each by itself. Repeated,
// it changes nothing.
func (r *relay) deliverTicks(ctx context.Context, calls *masterCalls, e ledger.Event, job string) (status ledger.Status) {
	var s *jobs.Schedule
	known := false
	calls.ask(ctx, e.Upstream, func(ctx context.Context) (err error) {
		s, err = r.schedule(ctx, e)
		known = err == nil
		return err
	})
	switch {
	case !known:
		return ""
	case s == nil: // no stored schedule has these ticks
		e.Rest = true
		return r.deliverTo(ctx, calls, e, job)
	}
	newest := newestOf(s, e)
	if status = r.deliverGaps(ctx, calls, s, part(e, e.Tick, newest[0]-1), job); status != follow.Done {
		return status
	}
	server := r.server(job)
	for i, tick := range newest {
		if r.notified.has(e, job, tick, server) { // where Redis is far, one sweep is too short for all
			continue
		}
		one := part(e, tick, tick)
		if one.Count = 1; i < len(newest)-1 {
			one.Next = newest[i+1]
		}
		if status = r.deliverTo(ctx, calls, one, job); status != follow.Done {
			return status
		}
		r.notified.keep(e, job, tick, server)
	}
	return status
}

// deliverGaps has a follower record ticks of an event as skipped, where it has no row of them. A gap
// with a row by now is answered with RelaySeveral: the next sweep looks again. So a call takes as long
// for a million ticks as for two.
func (r *relay) deliverGaps(ctx context.Context, calls *masterCalls, s *jobs.Schedule, e ledger.Event, job string) (status ledger.Status) {
	if e.Until < e.Tick {
		return follow.Done
	}
	var all []ledger.Gap
	calls.ask(ctx, job, func(ctx context.Context) error {
		rows, _, err := query.History(ctx, r.home.ledger, []string{job})
		if err == nil {
			status, all = follow.Done, gaps(s, rows[job], e)
		}
		return err
	})
	e.Rest = true
	for some := range slices.Chunk(all, gapsMost) {
		e.Gaps = some
		if status = r.deliverTo(ctx, calls, e, job); status != follow.Done {
			return status
		}
	}
	return status
}

// gaps are the ticks of an event without a row of the follower, in order.
func gaps(s *jobs.Schedule, rows []ledger.Row, e ledger.Event) (list []ledger.Gap) {
	rows = slices.DeleteFunc(slices.Clone(rows), func(row ledger.Row) bool { return row.Tick == 0 || row.Request != "" })
	slices.SortFunc(rows, func(a, b ledger.Row) int { return cmp.Compare(a.Tick, b.Tick) })
	from := e.Tick
	upTo := func(before int64) {
		before = min(before, e.Until+1)
		if n, last := s.Count(time.UnixMilli(from), time.UnixMilli(before)); from < before && n > 0 {
			first := s.Next(time.UnixMilli(from - 1))
			list = append(list, ledger.Gap{First: work.Millis(first), Last: work.Millis(last), Count: int64(n), Next: work.Millis(s.Next(last))})
		}
	}
	for _, row := range rows {
		upTo(row.Tick)
		from = max(from, row.Tick+1, row.Until+1)
	}
	upTo(e.Until + 1)
	return list
}

// schedule is the schedule with the ticks of an event: the schedule at the root of the chain of
// jobs, or a former schedule of that root; nil for none.
func (r *relay) schedule(ctx context.Context, e ledger.Event) (*jobs.Schedule, error) {
	root, d, err := r.root(ctx, e.Upstream)
	if err != nil || root == "" {
		return nil, err
	}
	if s, err := d.ParsedSchedule(); err == nil && counts(s, e) {
		return s, nil
	}
	rows, _, err := query.History(ctx, r.home.ledger, []string{root})
	if err != nil {
		return nil, err
	}
	for _, row := range slices.Backward(rows[root]) {
		if row.Outcome != jobs.OutcomeSuperseded || row.Note == "" {
			continue
		}
		if s, err := cron.ParseFor(root, row.Note, ""); err == nil && counts(s, e) {
			return s, nil
		}
	}
	return nil, nil
}

// root goes from a job to its upstream, and on to a job with a schedule. It returns that job's name
// and definition. The name is "" when one of these jobs is not stored, or its definition cannot be
// read.
func (r *relay) root(ctx context.Context, name string) (root string, d jobs.Definition, err error) {
	for range rootsMost {
		stored, err := query.Named(ctx, r.home.ledger, []string{name})
		if err != nil || len(stored) == 0 {
			return "", d, err
		}
		if d, err = jobs.ParseDefinition(stored[0].Definition); err != nil {
			return "", d, nil //nolint:nilerr // a newer version's
		}
		if len(d.After) == 0 {
			return name, d, nil
		}
		name = d.After[0]
	}
	return "", d, nil
}

// counts reports whether a schedule has as many ticks as the event, and from the first to the last.
func counts(s *jobs.Schedule, e ledger.Event) bool {
	n, last := s.Count(time.UnixMilli(e.Tick), time.UnixMilli(e.Until+1))
	return int64(n) == e.Count && work.Millis(last) == e.Until && work.Millis(s.Next(time.UnixMilli(e.Tick-1))) == e.Tick
}

// newestOf is the newest ticks of an event, in order, by a schedule that counts the event's.
func newestOf(s *jobs.Schedule, e ledger.Event) (ticks []int64) {
	for at := e.Until; at >= e.Tick && len(ticks) < eachMost; at = work.Millis(s.Prev(time.UnixMilli(at))) {
		ticks = append(ticks, at)
	}
	slices.Reverse(ticks)
	return ticks
}

// part is the event of its ticks from one instant to another. Its count is not set.
func part(e ledger.Event, from, to int64) ledger.Event {
	e.Tick, e.Until = from, to
	return e
}
