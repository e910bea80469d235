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
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// assertMax bounds the runs that one call asserts: for one run the script may read all pending runs
// of its partition.
const assertMax = 16

// ownRun is a run that was granted to this node, and its report if it has ended.
type ownRun struct {
	grant  work.Grant
	report *settle.Report
}

// assertCounts are the results of assertions, in runs.
type assertCounts struct{ restored, ended, left, lost int } // ended: of the restored ones

// assert reports all runs of this node in the current epochs, in partitions where they are not in place, and reports whether all are. A
// repeated call reports only the runs that are left. With last, it no longer waits for runs that other nodes would have to report first.
// Nothing is noted when another epoch has begun since changes were counted.
func (es *Epochs) assert(ctx context.Context, changes int, last bool) bool {
	if err := errors.Join(es.recall(ctx), es.refeed(ctx)); err != nil {
		es.failed(ctx, "recall", err)
		return false
	}
	rounds := 1
	if last {
		rounds = 3 // a cursor may move before its gap is sent
	}
	var sum assertCounts
	for range rounds {
		left, got, err := es.assertOnce(ctx, last)
		if err != nil {
			es.failed(ctx, "reassert", err)
			return false // Redis takes no assertions
		}
		if !es.advance(changes, (*Epoch).Asserted, left) {
			return false
		}
		sum.restored, sum.ended, sum.lost, sum.left = sum.restored+got.restored, sum.ended+got.ended, sum.lost+got.lost, len(left)
		if sum.left == 0 {
			break
		}
	}
	es.logAsserted(sum, last)
	if sum.left > 0 && !last {
		return false
	}
	return es.advance(changes, (*Epoch).Restored, nil)
}

// failed notes that nothing could be reported. In another epoch the next check finds it.
func (es *Epochs) failed(ctx context.Context, role string, err error) {
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, ledger.ErrServer) {
		es.Recheck()
		return
	}
	es.calls.Fail(role, err)
}

// advance takes all epochs a step further, with the runs that are left to restore. It returns false when another epoch has begun since
// changes were counted.
func (es *Epochs) advance(changes int, step func(*Epoch), left map[string]int64) bool {
	es.mu.Lock()
	defer es.mu.Unlock()
	if es.changes != changes {
		return false
	}
	for _, e := range es.epochs {
		step(e)
	}
	es.unrestored = left
	return true
}

// logAsserted logs the result of asserting.
func (es *Epochs) logAsserted(sum assertCounts, last bool) {
	if sum.restored > 0 {
		es.Log.Warn("Redis had lost runs of this node that go on or ended lately; they are restored", "going_on", sum.restored-sum.ended, "ended", sum.ended)
	}
	if sum.lost > 0 {
		es.Log.Warn("Redis has lost runs of this node whose ticks have another outcome now; the runs will be cancelled", "runs", sum.lost)
	}
	if sum.left > 0 && last {
		es.Log.Warn("Redis has lost runs of this node, and they could not be restored; those that go on will be cancelled", "runs", sum.left)
	}
	if sum.left == 0 {
		es.calls.Restored()
	}
}

// assertOnce reports all runs once, or the runs that are not restored yet. It returns
// the runs that are left.
func (es *Epochs) assertOnce(ctx context.Context, last bool) (left map[string]int64, got assertCounts, err error) {
	left = make(map[string]int64)
	for _, batch := range es.batches() {
		l := es.Ledger.At(es.EpochID(batch[0].grant.Job.Part))
		answers, err := es.assertBatch(ctx, l, batch, last)
		if err != nil {
			return nil, got, err
		}
		var ends []settle.Report
		for i, a := range answers {
			switch c := batch[i]; {
			case a.Status == epoch.Known || a.Status == epoch.Restored:
				if a.Status == epoch.Restored {
					got.restored++
				}
				if c.report != nil && a.Status == epoch.Restored {
					got.ended++
				}
				if c.report != nil {
					ends = append(ends, *c.report)
				}
			case needsRepeat(a.Status):
				left[c.grant.Lease.ID] = a.Cursor
			case a.Status != epoch.Ended && c.report == nil:
				got.lost++
				es.Log.Debug("run lost", "job", c.grant.Lease.Job, "tick", time.UnixMilli(c.grant.Lease.Tick).UTC(), "run", c.grant.Lease.ID, "answer", string(a.Status))
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
func (es *Epochs) assertBatch(ctx context.Context, l *ledger.Ledger, batch []ownRun, last bool) ([]epoch.Asserted, error) {
	list := make([]epoch.Assertion, len(batch))
	for i, c := range batch {
		list[i] = es.assertion(c, ownDefinition(c), last)
	}
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	answers, err := epoch.Reassert(call, l, es.Clock.LastRead().UnixMilli(), list)
	if err == nil {
		err = es.assertByStored(call, l, batch, answers, last)
	}
	switch {
	case err == nil:
		return answers, nil
	case errors.Is(err, ledger.ErrServer), errors.Is(err, locking.ErrUnreachable), errors.Is(err, ledger.ErrClock):
		return nil, err
	}
	es.calls.Fail("reassert", err)
	return make([]epoch.Asserted, len(batch)), nil
}

// needsRepeat reports whether a run with this answer is to be asserted again: its tick is behind
// other ticks, its job is being registered, or there was no answer.
func needsRepeat(w ledger.Status) bool {
	return w == epoch.Behind || w == epoch.OtherDef || w == epoch.NoSuchJob || w == ""
}

// resettle records reports that Redis had taken and lost.
func resettle(ctx context.Context, l *ledger.Ledger, ends []settle.Report) error {
	if len(ends) == 0 {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	_, err := settle.Settle(call, l, ends) // lost and unknown are final: another node has ended the run meanwhile
	return err
}

// batches are this node's runs, going or ended lately, in the partitions where they are not in place; or only the runs that are not restored
// yet. Each batch is of one partition, ordered by token, as the runs were granted.
func (es *Epochs) batches() [][]ownRun {
	es.mu.Lock()
	all, known := []ownRun(nil), make(map[string]bool)
	//guard:ends-asserted P2 the ends of runs are asserted to a Redis that has lost them
	for _, e := range es.Reporter.Ends.list() {
		known[e.Report.Run] = true
		all = append(all, ownRun{e.Grant, &e.Report})
	}
	//guard:runs-asserted P1 the grants of runs are asserted to a Redis that has lost them
	for _, g := range es.Reporter.Runs.Grants() {
		if !known[g.Lease.ID] {
			all = append(all, ownRun{grant: g})
		}
	}
	all = slices.DeleteFunc(all, func(c ownRun) bool {
		_, is := es.unrestored[c.grant.Lease.ID]
		e := es.epochs[c.grant.Job.Part]
		return es.unrestored != nil && !is || e == nil || e.State() >= Waiting
	})
	es.mu.Unlock()
	slices.SortFunc(all, func(a, b ownRun) int {
		return cmp.Or(a.grant.Job.Part-b.grant.Job.Part, cmp.Compare(a.grant.Lease.Token, b.grant.Lease.Token), a.grant.Job.Index-b.grant.Job.Index)
	})
	return slices.Collect(work.Batches(all, assertMax, func(c ownRun) int { return c.grant.Job.Part }))
}

// assertion is what the ledger needs to restore a run, by a definition of its job.
func (es *Epochs) assertion(c ownRun, d definition, last bool) epoch.Assertion {
	l := c.grant.Lease
	a := epoch.Assertion{Digest: d.digest, Run: l}
	if c.report != nil {
		a.Ended = c.report.Ended
	}
	if l.TickID != "" && l.Shards == d.shards {
		a.Reopen, a.Params = true, d.params
	}
	if l.Prev == 0 && d.schedule != nil { // a shard, or a later attempt: its tick's step may be lost too
		a.Next = work.Millis(d.schedule.Next(time.UnixMilli(l.Tick)))
	}
	es.mu.Lock()
	cursor := es.unrestored[l.ID]
	es.mu.Unlock()
	if last && cursor != 0 && d.schedule != nil {
		count, until := d.schedule.Count(time.UnixMilli(cursor), time.UnixMilli(l.Tick))
		a.Gap = &ledger.SkippedRange{First: cursor, Last: cmp.Or(work.Millis(until), cursor), Count: int64(count)}
	}
	return a
}
