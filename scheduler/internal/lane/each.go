package lane

import (
	"context"
	"slices"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// eachMost is how many ticks that did not run are delivered one by one, the newest of an event. The others are recorded as skipped.
const eachMost = 100

// restMost is how many of those others one call takes.
const restMost = 500

// rootsMost bounds the chain of jobs before a follower.
const rootsMost = 1000

// tell sends an event to one follower and returns its answer.
func (r *relay) tell(ctx context.Context, asks *round, e ledger.Event, job string) (status ledger.Status) {
	asks.ask(ctx, job, func(ctx context.Context) (err error) {
		status, err = r.l.Ledger.Relay(ctx, e, job)
		return err
	})
	return status
}

// tellEach sends the ticks of an event to one follower, each by itself. Repeated, it changes nothing.
func (r *relay) tellEach(ctx context.Context, asks *round, e ledger.Event, job string) (status ledger.Status) {
	var ticks []int64
	known := false
	asks.ask(ctx, e.Upstream, func(ctx context.Context) (err error) {
		ticks, err = r.ticks(ctx, e)
		known = err == nil
		return err
	})
	switch {
	case !known:
		return ""
	case ticks == nil: // nobody here can tell them
		e.Rest = true
		return r.tell(ctx, asks, e, job)
	}
	old := max(0, len(ticks)-eachMost)
	for from := 0; from < old; from += restMost {
		to := min(from+restMost, old)
		rest := part(e, ticks, from, to)
		rest.Rest, rest.Ticks = true, ticks[from:to]
		if status = r.tell(ctx, asks, rest, job); status != ledger.RelayDone {
			return status
		}
	}
	for i := old; i < len(ticks); i++ {
		if status = r.tell(ctx, asks, part(e, ticks, i, i+1), job); status != ledger.RelayDone {
			return status
		}
	}
	return status
}

// ticks are those of an event: by the schedule with which the chain of jobs begins, or by one that it replaced; nil when no schedule has
// them.
func (r *relay) ticks(ctx context.Context, e ledger.Event) ([]int64, error) {
	root, d, err := r.root(ctx, e.Upstream)
	if err != nil || root == "" {
		return nil, err
	}
	if s, err := d.Job().ParsedSchedule(); err == nil && counts(s, e) {
		return list(s, e), nil
	}
	rows, _, err := r.l.Ledger.History(ctx, []string{root})
	if err != nil {
		return nil, err
	}
	for _, row := range slices.Backward(rows[root]) {
		if row.Outcome != jobs.OutcomeSuperseded || row.Note == "" {
			continue
		}
		if s, err := jobs.ParseScheduleFor(root, row.Note, ""); err == nil && counts(s, e) {
			return list(s, e), nil
		}
	}
	return nil, nil
}

// root goes from a job to the one that it follows, and on to a job with a schedule. It returns that job's name and definition. The name is
// "" when one of these jobs is not stored, or its definition cannot be read.
func (r *relay) root(ctx context.Context, name string) (root string, d jobs.Definition, err error) {
	for range rootsMost {
		stored, err := r.l.Ledger.Named(ctx, []string{name})
		if err != nil || len(stored) == 0 {
			return "", d, err
		}
		if d, err = jobs.ParseDefinition(stored[0].Definition); err != nil {
			return "", d, nil //nolint:nilerr // a newer version's
		}
		if d.After.IsZero() {
			return name, d, nil
		}
		name = d.After.Names[0]
	}
	return "", d, nil
}

// counts reports whether a schedule has as many ticks as the event, and from the first to the last.
func counts(s *jobs.Schedule, e ledger.Event) bool {
	n, last := s.Count(time.UnixMilli(e.Tick), time.UnixMilli(e.Until+1))
	return int64(n) == e.Count && work.Millis(last) == e.Until && work.Millis(s.Next(time.UnixMilli(e.Tick-1))) == e.Tick
}

// list is the ticks of a schedule that counts an event's.
func list(s *jobs.Schedule, e ledger.Event) (ticks []int64) {
	for _, at := range s.Between(time.UnixMilli(e.Tick), time.UnixMilli(e.Until+1), int(e.Count)) {
		ticks = append(ticks, at.UnixMilli())
	}
	return ticks
}

// part is the event of some of its ticks.
func part(e ledger.Event, ticks []int64, from, to int) ledger.Event {
	e.Tick, e.Until, e.Count = ticks[from], ticks[to-1], int64(to-from)
	if to < len(ticks) {
		e.Next = ticks[to]
	}
	return e
}
