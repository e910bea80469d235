package lane

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// begins reports whether the epoch in which a run was granted is still the last one that this node has
// noticed. In that one the node reports the run from now on. A run of another epoch must not
// begin, because it can no longer be asserted.
func (f *epochs) begins(g work.Grant) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.epochs[g.Job.Part]; e == nil || e.ID() != g.Epoch {
		return false
	}
	f.l.lanes.cursors.stepped(g, f.l.Clock.Now().UnixMilli())
	return true
}

// answered notes the cursors in answers, if they are of the last epoch that this node has
// noticed.
func (f *epochs) answered(b *work.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.epochs[b.Part]; e != nil && e.ID() == b.Epoch {
		e.Answered(b.Epoch, f.l.Clock.Now().UnixMilli())
		f.l.lanes.cursors.answered(b, f.l.Clock.Now().Add(-time.Since(b.LastSent)).UnixMilli())
	}
}

// id is the id of a partition's current epoch; one that every script refuses when none is known.
func (f *epochs) id(part int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.epochs[part]; e != nil {
		return cmp.Or(e.ID(), ledger.Nobody)
	}
	return ledger.Nobody
}

// recall reports, before any run is asserted, the cursors of this node's jobs as known
// from the last open epoch. A job that Redis has lost begins there, at the latest cursor that
// a node reports. Jobs whose cursor is behind are left to level.
func (f *epochs) recall(ctx context.Context) error {
	last := make(map[int]int64)
	f.mu.Lock()
	for part, e := range f.epochs {
		if e.State() == failover.Asserting && e.LastAnswer() != 0 {
			last[part] = e.LastAnswer()
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
			some, err := f.recallOf(ctx, list, last[part])
			if err != nil {
				return err
			}
			behind = append(behind, some...)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = last
	//guard:behind-once P2 a gap is filled once, though recall is repeated
	f.behind = slices.Compact(sorted(append(f.behind, behind...)))
	return nil
}

func sorted(list []*work.Job) []*work.Job {
	slices.SortFunc(list, func(a, b *work.Job) int { return cmp.Or(a.Part-b.Part, a.Index-b.Index) })
	return list
}

// recallOf reports jobs of one partition. It fills the gaps of jobs that were claimed anew before
// this node could report, reports the next tick of jobs whose run is there, and returns the jobs
// whose cursor is behind.
func (f *epochs) recallOf(ctx context.Context, list []*work.Job, last int64) (behind []*work.Job, err error) {
	known, batch := f.recollections(list, last)
	again, err := f.remind(ctx, batch)
	if err != nil {
		return nil, err
	}
	var reports []ledger.KnownCursor
	for _, a := range again {
		r := batch[a.At]
		switch a.Word {
		case ledger.Behind:
			behind = append(behind, known[a.At])
			continue
		case ledger.After:
			r.Cursor = work.Millis(known[a.At].Schedule.Next(time.UnixMilli(a.Cursor)))
		default:
			r.Gap = gapOf(known[a.At], r.Cursor, a.Cursor)
		}
		if r.Cursor != 0 {
			reports = append(reports, r)
		}
	}
	_, err = f.remind(ctx, reports)
	return behind, err
}

// recollections are the known cursors of jobs, and their jobs.
func (f *epochs) recollections(list []*work.Job, last int64) (known []*work.Job, batch []ledger.KnownCursor) {
	for _, j := range list {
		if r, some := f.l.lanes.cursors.recollect(j, last, 2*f.l.SweepEvery); some {
			known, batch = append(known, j), append(batch, r)
		}
	}
	return known, batch
}

// level records the ticks that Redis has lost and that no node was granted, after all nodes have
// reported their runs or FailoverHold is over. It reports whether that is done.
func (f *epochs) level(ctx context.Context) bool {
	f.mu.Lock()
	behind, last := f.behind, f.last
	f.mu.Unlock()
	for list := range work.Batches(behind, ledger.BatchMax, func(j *work.Job) int { return j.Part }) {
		if err := f.levelOf(ctx, list, last[list[0].Part]); err != nil {
			f.failed(ctx, "recall", err)
			return false
		}
	}
	f.mu.Lock()
	f.behind = nil
	f.mu.Unlock()
	return true
}

func (f *epochs) levelOf(ctx context.Context, list []*work.Job, last int64) error {
	known, batch := f.recollections(list, last)
	again, err := f.remind(ctx, batch)
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
	_, err = f.remind(ctx, gaps)
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
func (f *epochs) remind(ctx context.Context, batch []ledger.KnownCursor) ([]ledger.Recalled, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	call, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	again, err := f.l.Ledger.At(f.id(f.l.Ledger.Partition(batch[0].Job))).Recall(call, f.l.Clock.lastRead().UnixMilli(), batch)
	switch {
	case err == nil:
		return again, nil
	case errors.Is(err, ledger.ErrServer), errors.Is(err, locking.ErrUnreachable), errors.Is(err, ledger.ErrClock):
		return nil, err
	}
	f.l.fail("recall", err)
	return nil, nil
}
