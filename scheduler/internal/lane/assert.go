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

// assertMax bounds the runs that one call asserts: for one run the script may read all pending runs
// of its partition.
const assertMax = 16

// ownRun is a run that was granted to this node, and its report if it has ended.
type ownRun struct {
	grant  work.Grant
	report *ledger.Report
}

// assertCounts are the results of assertions, in runs.
type assertCounts struct{ restored, left, lost int }

// assert asserts all runs of this node to a server, in the partitions that it has newly, and
// reports whether all are restored. A repeated call asserts only the runs that are left. With last,
// it no longer waits for runs that other nodes would have to assert first.
func (f *failover) assert(ctx context.Context, server string, last bool) bool {
	if err := f.recall(ctx, server); err != nil {
		if ctx.Err() == nil && !errors.Is(err, ledger.ErrServer) {
			f.l.fail("recall", err)
		}
		return false
	}
	rounds := 1
	if last {
		rounds = 3 // a cursor may move before its gap is sent
	}
	var sum assertCounts
	for range rounds {
		left, got, err := f.assertOnce(ctx, server, last)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, ledger.ErrServer) { // another server again: the next check finds it
				f.l.fail("reassert", err)
			}
			return false // there is nobody to assert runs to
		}
		f.mu.Lock()
		f.eachNoticed(server, func(e *epoch) { e.asserted = server })
		f.unrestored, f.unrestoredOf = left, server
		f.mu.Unlock()
		sum.restored, sum.lost, sum.left = sum.restored+got.restored, sum.lost+got.lost, len(left)
		if sum.left == 0 {
			break
		}
	}
	f.logAsserted(sum, last)
	if sum.left > 0 && !last {
		return false
	}
	f.mu.Lock()
	f.eachNoticed(server, func(e *epoch) { e.restored = server })
	f.unrestored = nil
	f.mu.Unlock()
	return true
}

// eachNoticed calls do for all partitions that have noticed a server. The caller holds the lock.
func (f *failover) eachNoticed(server string, do func(*epoch)) {
	for _, e := range f.epochs {
		if e.noticed == server {
			do(e)
		}
	}
}

// logAsserted logs the result of asserting.
func (f *failover) logAsserted(sum assertCounts, last bool) {
	if sum.restored > 0 {
		f.l.Log.Warn("Redis had lost runs of this node; they are restored", "runs", sum.restored)
	}
	if sum.lost > 0 {
		f.l.Log.Warn("Redis has lost runs of this node whose ticks have another outcome now; the runs will be cancelled", "runs", sum.lost)
	}
	if sum.left > 0 && last {
		f.l.Log.Warn("Redis has lost runs of this node, and they could not be restored; those that go on will be cancelled", "runs", sum.left)
	}
	if sum.left == 0 {
		f.l.Health.OK("reassert")
	}
}

// assertOnce asserts all runs once, or those that this server has not restored yet. It returns
// those that are left.
func (f *failover) assertOnce(ctx context.Context, server string, last bool) (left map[string]int64, got assertCounts, err error) {
	l := f.l.Ledger.At(server)
	left = make(map[string]int64)
	for _, batch := range f.batches(server) {
		answers, err := f.assertBatch(ctx, l, server, batch, last)
		if err != nil {
			return nil, got, err
		}
		var ends []ledger.Report
		for i, a := range answers {
			switch c := batch[i]; {
			case a.Word == ledger.Known || a.Word == ledger.Restored:
				if a.Word == ledger.Restored {
					got.restored++
				}
				if c.report != nil {
					ends = append(ends, *c.report)
				}
			case needsRepeat(a.Word):
				left[c.grant.Lease.Run] = a.Cursor
			case a.Word != ledger.Ended && c.report == nil:
				got.lost++
				f.l.Log.Debug("run lost", "job", c.grant.Lease.Job, "tick", time.UnixMilli(c.grant.Lease.Tick).UTC(), "run", c.grant.Lease.Run, "answer", string(a.Word))
			}
		}
		if err := resettle(ctx, l, ends); err != nil {
			return nil, got, err
		}
	}
	return left, got, nil
}

// assertBatch asserts runs of one partition. Where that partition alone fails, all answers are
// empty, and the other partitions go on.
func (f *failover) assertBatch(ctx context.Context, l *ledger.Ledger, server string, batch []ownRun, last bool) ([]ledger.Asserted, error) {
	list := make([]ledger.Assertion, len(batch))
	for i, c := range batch {
		list[i] = f.assertion(c, last)
	}
	call, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	answers, err := l.Reassert(call, f.l.Clock.lastRead().UnixMilli(), server, list)
	switch {
	case err == nil:
		return answers, nil
	case errors.Is(err, ledger.ErrServer), errors.Is(err, locking.ErrUnreachable), errors.Is(err, ledger.ErrClock):
		return nil, err
	}
	f.l.fail("reassert", err)
	return make([]ledger.Asserted, len(batch)), nil
}

// needsRepeat reports whether a run with this answer is to be asserted again: its tick is behind
// others, its job is being registered, or there was no answer.
func needsRepeat(w ledger.Status) bool {
	return w == ledger.Behind || w == ledger.OtherDef || w == ledger.NoSuchJob || w == ""
}

// resettle records reports that Redis had taken and lost.
func resettle(ctx context.Context, l *ledger.Ledger, ends []ledger.Report) error {
	if len(ends) == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	_, err := l.Settle(call, ends) // lost and unknown are final: another node has ended the run meanwhile
	return err
}

// batches are this node's runs, going or ended lately, in the partitions that the server has newly;
// or only those that the server has not restored yet. Each batch is of one partition, ordered by
// token, as the runs were granted.
func (f *failover) batches(server string) [][]ownRun {
	f.mu.Lock()
	left := f.unrestoredOf == server
	all, known := []ownRun(nil), make(map[string]bool)
	//guard:ends-asserted P2 the ends of runs are asserted to a Redis that has lost them
	for _, e := range f.l.lanes.ended.list() {
		known[e.Report.Run] = true
		all = append(all, ownRun{e.Grant, &e.Report})
	}
	//guard:runs-asserted P1 the grants of runs are asserted to a Redis that has lost them
	for _, g := range f.l.Runs.Grants() {
		if !known[g.Lease.Run] {
			all = append(all, ownRun{grant: g})
		}
	}
	all = slices.DeleteFunc(all, func(c ownRun) bool {
		_, is := f.unrestored[c.grant.Lease.Run]
		e := f.epochs[c.grant.Job.Part]
		return left && !is || e == nil || e.noticed != server || e.restored == server
	})
	f.mu.Unlock()
	slices.SortFunc(all, func(a, b ownRun) int {
		return cmp.Or(a.grant.Job.Part-b.grant.Job.Part, cmp.Compare(a.grant.Lease.Token, b.grant.Lease.Token), a.grant.Job.Index-b.grant.Job.Index)
	})
	return slices.Collect(work.Batches(all, assertMax, func(c ownRun) int { return c.grant.Job.Part }))
}

// assertion is what the ledger needs to restore a run.
func (f *failover) assertion(c ownRun, last bool) ledger.Assertion {
	j, l := c.grant.Job, c.grant.Lease
	a := ledger.Assertion{Digest: j.Digest, Lease: l}
	if c.report != nil {
		a.Ended = c.report.Ended
	}
	if l.Of != "" && l.Shards == j.Shards {
		a.Reopen, a.Params = true, j.Params
	}
	if l.Prev == 0 && j.Schedule != nil { // a shard, or a later attempt: its tick's step may be lost too
		a.Next = work.Millis(j.Schedule.Next(time.UnixMilli(l.Tick)))
	}
	f.mu.Lock()
	cursor := f.unrestored[l.Run]
	f.mu.Unlock()
	if last && cursor != 0 && j.Schedule != nil {
		count, until := j.Schedule.Count(time.UnixMilli(cursor), time.UnixMilli(l.Tick))
		a.Gap = &ledger.SkippedRange{First: cursor, Last: cmp.Or(work.Millis(until), cursor), Count: int64(count)}
	}
	return a
}
