package failover

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// recall reports, before any run is asserted, the cursors of this node's jobs as known
// from the last open epoch. A job that Redis has lost begins there, at the latest cursor that
// a node reports. Jobs whose cursor is behind are left to fillGaps.
func (es *Epochs) recall(ctx context.Context) error {
	last := make(map[int]int64)
	es.mu.Lock()
	for part, e := range es.epochs {
		if e.State() == Asserting && e.LastAnswer() != 0 {
			last[part] = e.LastAnswer()
		}
	}
	es.mu.Unlock()
	if len(last) == 0 {
		return nil
	}
	byPart := make(map[int][]*work.Job)
	for _, j := range es.Jobs.All() {
		if last[j.Part] != 0 {
			byPart[j.Part] = append(byPart[j.Part], j)
		}
	}
	var behind []*work.Job
	for _, part := range es.Parts() {
		for list := range slices.Chunk(byPart[part], epoch.RecallMax) {
			some, err := es.recallOf(ctx, list, last[part])
			if err != nil {
				return err
			}
			behind = append(behind, some...)
		}
	}
	es.mu.Lock()
	defer es.mu.Unlock()
	es.last = last
	//guard:behind-once P2 a gap is filled once, though recall is repeated
	es.behind = slices.Compact(sorted(append(es.behind, behind...)))
	return nil
}

func sorted(list []*work.Job) []*work.Job {
	slices.SortFunc(list, func(a, b *work.Job) int { return cmp.Or(a.Part-b.Part, a.Index-b.Index) })
	return list
}

// recallOf reports jobs of one partition. It fills the gaps of jobs that were claimed anew before
// this node could report, reports the next tick of jobs whose run is there, and returns the jobs
// whose cursor is behind.
func (es *Epochs) recallOf(ctx context.Context, list []*work.Job, last int64) (behind []*work.Job, err error) {
	known, batch := es.recollections(list, last)
	again, err := es.reportCursors(ctx, batch)
	if err != nil {
		return nil, err
	}
	var reports []epoch.KnownCursor
	for _, a := range again {
		r := batch[a.At]
		switch a.Status {
		case epoch.Behind:
			behind = append(behind, known[a.At])
			continue
		case epoch.After:
			r.Cursor = work.Millis(known[a.At].Schedule.Next(time.UnixMilli(a.Cursor)))
		default:
			r.Gap = gapOf(known[a.At], r.Cursor, a.Cursor)
		}
		if r.Cursor != 0 {
			reports = append(reports, r)
		}
	}
	_, err = es.reportCursors(ctx, reports)
	return behind, err
}

// recollections are the known cursors of jobs, and their jobs.
func (es *Epochs) recollections(list []*work.Job, last int64) (known []*work.Job, batch []epoch.KnownCursor) {
	for _, j := range list {
		if r, some := es.Reporter.Cursors.recollect(j, last, 2*es.SweepEvery); some {
			known, batch = append(known, j), append(batch, r)
		}
	}
	return known, batch
}

// fillGaps records the ticks that Redis has lost and that no node was granted, after all nodes have
// reported their runs or Hold is over. It reports whether that is done.
func (es *Epochs) fillGaps(ctx context.Context) bool {
	es.mu.Lock()
	behind, last := es.behind, es.last
	es.mu.Unlock()
	for list := range work.Batches(behind, ledger.BatchMax, func(j *work.Job) int { return j.Part }) {
		if err := es.fillGapsOf(ctx, list, last[list[0].Part]); err != nil {
			es.failed(ctx, "recall", err)
			return false
		}
	}
	es.mu.Lock()
	es.behind = nil
	es.mu.Unlock()
	return true
}

func (es *Epochs) fillGapsOf(ctx context.Context, list []*work.Job, last int64) error {
	known, batch := es.recollections(list, last)
	again, err := es.reportCursors(ctx, batch)
	if err != nil {
		return err
	}
	var gaps []epoch.KnownCursor
	for _, a := range again {
		r := batch[a.At]
		r.Gap = gapOf(known[a.At], a.Cursor, r.Cursor)
		es.Log.Warn("Redis had lost the records of ticks; they are recorded as missed", "job", r.Job,
			"tick", time.UnixMilli(r.Gap.First).UTC(), "until", time.UnixMilli(r.Gap.Last).UTC(), "count", r.Gap.Count)
		gaps = append(gaps, r)
	}
	_, err = es.reportCursors(ctx, gaps)
	return err
}

// gapOf is the range of ticks from one instant up to another, ms. The first instant counts as a
// tick.
func gapOf(j *work.Job, from, to int64) *ledger.SkippedRange {
	count, until := j.Schedule.Count(time.UnixMilli(from), time.UnixMilli(to))
	return &ledger.SkippedRange{First: from, Last: cmp.Or(work.Millis(until), from), Count: int64(count)}
}

// reportCursors reports jobs of one partition once. Where that partition alone fails, there is no answer,
// and the other partitions go on.
func (es *Epochs) reportCursors(ctx context.Context, batch []epoch.KnownCursor) ([]epoch.Recalled, error) {
	if len(batch) == 0 {
		return nil, nil
	}
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	again, err := epoch.Recall(call, es.Ledger.At(es.EpochID(es.Ledger.Partition(batch[0].Job))), es.Clock.LastRead().UnixMilli(), batch)
	switch {
	case err == nil:
		return again, nil
	case errors.Is(err, ledger.ErrServer), errors.Is(err, locking.ErrUnreachable), errors.Is(err, ledger.ErrClock):
		return nil, err
	}
	es.calls.Fail("recall", err)
	return nil, nil
}
