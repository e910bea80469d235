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

// begins says whether a server that has granted a run is still the one that this node has noticed, which is told of it from now on. What
// another one granted comes too late to be told, if it has not begun.
func (f *failover) begins(g work.Grant) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.epochs[g.Job.Part]; e == nil || e.noticed != g.Server {
		return false
	}
	f.l.lanes.cursors.stepped(g, f.l.Clock.Now().UnixMilli())
	return true
}

// answered takes up where jobs stand by the answers of a server, if it is the one that this node has noticed.
func (f *failover) answered(b *work.Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e := f.epochs[b.Part]; e != nil && e.noticed == b.Server {
		e.hear(b.Server, f.l.Clock)
		f.l.lanes.cursors.answered(b, f.l.Clock.Now().Add(-time.Since(b.LastSent)).UnixMilli())
	}
}

// hear takes up that a server was heard of, if it is the one that is asked for runs.
func (e *epoch) hear(server string, c *Clock) {
	if e.open == server {
		e.heard = c.Now().UnixMilli()
	}
}

// recall tells a server where the jobs of its partitions stood in the one before it, as far as this node knows, before it is told of runs.
// Jobs that it has lost begin there, at the latest that some node tells. Others that stand behind are noted for level.
func (f *failover) recall(ctx context.Context, server string) error {
	last := make(map[int]int64)
	f.mu.Lock()
	for part, e := range f.epochs {
		if e.noticed == server && e.asserted != server && e.heard != 0 {
			last[part] = e.heard
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

// recallOf tells of jobs of one partition, and of those at once that were claimed anew before this node could tell. It returns those that stand behind.
func (f *failover) recallOf(ctx context.Context, server string, list []*work.Job, last int64) (behind []*work.Job, err error) {
	told, batch := f.recollections(list, last)
	again, err := f.remind(ctx, server, batch)
	if err != nil {
		return nil, err
	}
	var gaps []ledger.KnownCursor
	for _, a := range again {
		if a.Word == ledger.Behind {
			behind = append(behind, told[a.At])
			continue
		}
		r := batch[a.At]
		r.Gap = gapOf(told[a.At], r.Cursor, a.Cursor)
		gaps = append(gaps, r)
	}
	_, err = f.remind(ctx, server, gaps)
	return behind, err
}

// recollections are what this node knows of where jobs stood, and of which jobs.
func (f *failover) recollections(list []*work.Job, last int64) (told []*work.Job, batch []ledger.KnownCursor) {
	for _, j := range list {
		if r, some := f.l.lanes.cursors.recollect(j, last, 2*f.l.SweepEvery); some {
			told, batch = append(told, j), append(batch, r)
		}
	}
	return told, batch
}

// level records, when all nodes have said what they run, or nobody waits for them any longer, what Redis has lost of ticks that nobody
// was granted. It says whether that is done.
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
	told, batch := f.recollections(list, last)
	again, err := f.remind(ctx, server, batch)
	if err != nil {
		return err
	}
	var gaps []ledger.KnownCursor
	for _, a := range again {
		r := batch[a.At]
		r.Gap = gapOf(told[a.At], a.Cursor, r.Cursor)
		f.l.Log.Warn("Redis had lost what became of ticks; they are recorded as missed", "job", r.Job,
			"tick", time.UnixMilli(r.Gap.First).UTC(), "until", time.UnixMilli(r.Gap.Last).UTC(), "count", r.Gap.Count)
		gaps = append(gaps, r)
	}
	_, err = f.remind(ctx, server, gaps)
	return err
}

// gapOf are the ticks from one instant up to another one, ms. The first counts as one.
func gapOf(j *work.Job, from, to int64) *ledger.SkippedRange {
	count, until := j.Schedule.Count(time.UnixMilli(from), time.UnixMilli(to))
	return &ledger.SkippedRange{First: from, Last: cmp.Or(work.Millis(until), from), Count: int64(count)}
}

// remind tells once of jobs of one partition, whose own trouble keeps no other waiting.
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
