package lane

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// begins reports whether the server that granted a run is still the last one that this node has
// noticed. That server knows of the run from now on. A run that another server granted must not
// begin, because it can no longer be asserted.
func (f *failover) begins(g work.Grant) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.epochs[g.Job.Part]; e == nil || e.noticed != g.Server {
		return false
	}
	f.l.lanes.cursors.stepped(g, f.l.Clock.Now().UnixMilli())
	return true
}

// answered notes the cursors in a server's answers, if it is the last one that this node has
// noticed.
func (f *failover) answered(b *work.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.epochs[b.Part]; e != nil && e.noticed == b.Server {
		e.answeredBy(b.Server, f.l.Clock)
		f.l.lanes.cursors.answered(b, f.l.Clock.Now().Add(-time.Since(b.LastSent)).UnixMilli())
	}
}

// answeredBy notes that a server has answered, if it is the one that may be asked for runs.
func (e *epoch) answeredBy(server string, c *Clock) {
	if e.open == server {
		e.lastAnswer = c.Now().UnixMilli()
	}
}

// recall reports to a server, before any run is asserted, the cursors of this node's jobs as known
// from the previous server. A job that the server has lost begins there, at the latest cursor that
// a node reports. Jobs whose cursor is behind are left to level.
func (f *failover) recall(ctx context.Context, server string) error {
	last := make(map[int]int64)
	f.mu.Lock()
	for part, e := range f.epochs {
		if e.noticed == server && e.asserted != server && e.lastAnswer != 0 {
			last[part] = e.lastAnswer
		}
	}
	f.mu.Unlock()
	if len(last) == 0 {
		return nil
	}
	byPart := make(map[int][]*work.Job)
	for _, j := range f.l.Jobs.All() {
		if last[j.Part] != 0 {
			byPart[j.Part] = append(byPart[j.Part], j)
		}
	}
	var behind []*work.Job
	for _, part := range f.parts() {
		for list := range slices.Chunk(byPart[part], ledger.RecallMax) {
			some, err := f.recallOf(ctx, server, list, last[part])
			if err != nil {
				return err
			}
			behind = append(behind, some...)
		}
	}
	f.mu.Lock()
	f.behind, f.last = append(f.behind, behind...), last
	f.mu.Unlock()
	return nil
}

// recallOf reports jobs of one partition. It fills the gaps of jobs that were claimed anew before
// this node could report, and returns the jobs whose cursor is behind.
func (f *failover) recallOf(ctx context.Context, server string, list []*work.Job, last int64) (behind []*work.Job, err error) {
	known, batch := f.recollections(list, last)
	again, err := f.remind(ctx, server, batch)
	if err != nil {
		return nil, err
	}
	var gaps []ledger.KnownCursor
	for _, a := range again {
		if a.Word == ledger.Behind {
			behind = append(behind, known[a.At])
			continue
		}
		r := batch[a.At]
		r.Gap = gapOf(known[a.At], r.Cursor, a.Cursor)
		gaps = append(gaps, r)
	}
	_, err = f.remind(ctx, server, gaps)
	return behind, err
}

// recollections are the known cursors of jobs, and their jobs.
func (f *failover) recollections(list []*work.Job, last int64) (known []*work.Job, batch []ledger.KnownCursor) {
	for _, j := range list {
		if r, some := f.l.lanes.cursors.recollect(j, last, 2*f.l.SweepEvery); some {
			known, batch = append(known, j), append(batch, r)
		}
	}
	return known, batch
}

// level records the ticks that Redis has lost and that no node was granted, after all nodes have
// reported their runs or FailoverHold is over. It reports whether that is done.
func (f *failover) level(ctx context.Context, server string) bool {
	f.mu.Lock()
	behind, last := f.behind, f.last
	f.mu.Unlock()
	slices.SortFunc(behind, func(a, b *work.Job) int { return cmp.Or(a.Part-b.Part, a.Index-b.Index) })
	for list := range work.Batches(behind, ledger.BatchMax, func(j *work.Job) int { return j.Part }) {
		if err := f.levelOf(ctx, server, list, last[list[0].Part]); err != nil {
			if !errors.Is(err, ledger.ErrServer) {
				f.l.fail("recall", err)
			}
			return false
		}
	}
	f.mu.Lock()
	f.behind = nil
	f.mu.Unlock()
	return true
}

func (f *failover) levelOf(ctx context.Context, server string, list []*work.Job, last int64) error {
	known, batch := f.recollections(list, last)
	again, err := f.remind(ctx, server, batch)
	if err != nil {
		return err
	}
	var gaps []ledger.KnownCursor
	for _, a := range again {
		r := batch[a.At]
		r.Gap = gapOf(known[a.At], a.Cursor, r.Cursor)
		f.l.Log.Warn("Redis had lost the records of ticks; they are recorded as missed", "job", r.Job,
			"tick", time.UnixMilli(r.Gap.First).UTC(), "until", time.UnixMilli(r.Gap.Last).UTC(), "count", r.Gap.Count)
		gaps = append(gaps, r)
	}
	_, err = f.remind(ctx, server, gaps)
	return err
}

// gapOf is the range of ticks from one instant up to another, ms. The first instant counts as a
// tick.
func gapOf(j *work.Job, from, to int64) *ledger.SkippedRange {
	count, until := j.Schedule.Count(time.UnixMilli(from), time.UnixMilli(to))
	return &ledger.SkippedRange{First: from, Last: cmp.Or(work.Millis(until), from), Count: int64(count)}
}

// remind reports jobs of one partition once. Where that partition alone fails, there is no answer,
// and the other partitions go on.
func (f *failover) remind(ctx context.Context, server string, batch []ledger.KnownCursor) ([]ledger.Recalled, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	call, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	again, err := f.l.Ledger.Recall(call, f.l.Clock.lastRead().UnixMilli(), server, batch)
	switch {
	case err == nil:
		return again, nil
	case errors.Is(err, ledger.ErrServer), errors.Is(err, locking.ErrUnreachable), errors.Is(err, ledger.ErrClock):
		return nil, err
	}
	f.l.fail("recall", err)
	return nil, nil
}
