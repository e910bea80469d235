package lane

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// feeder takes the backfills of a lane's partitions on. Only nodes can: scripts know no schedules.
// Any node that has the job may, because Feed compares; the node that goes first for the job does
// it at each sweep, and the others when it has not looked for long.
type feeder struct {
	l    *Lane
	last []ledger.Backfill               // as the last sweep found them
	jobs atomic.Pointer[map[string]bool] // the jobs of last
}

// seen notes what a sweep found. New backfills are fed by the next sweep, at once.
func (f *feeder) seen(all []ledger.Backfill) {
	before, now := f.jobs.Load(), make(map[string]bool, len(all))
	for _, b := range all {
		if now[b.Job] = true; before == nil || !(*before)[b.Job] {
			wait.Signal(f.l.sweep)
		}
	}
	f.last = all
	f.jobs.Store(&now)
}

// ended has the lane sweep at once when a run of a job has ended that has a backfill: its next tick
// may be put into pending.
func (f *feeder) ended(job string) {
	if now := f.jobs.Load(); now != nil && (*now)[job] {
		wait.Signal(f.l.sweep)
	}
}

// feed takes the backfills on that the last sweep found, before the next one reads what is pending.
func (f *feeder) feed(ctx context.Context, asks *round) {
	now := f.l.Clock.Now().UnixMilli()
	for _, b := range f.last {
		j := f.l.Jobs.Named(b.Job)
		if j == nil || j.Schedule == nil && b.Next != 0 || !f.l.TakesWork() || !f.myTurn(j, now-b.Looked) {
			continue
		}
		asks.ask(ctx, b.Job, func(ctx context.Context) error {
			err := f.one(ctx, j, b)
			if errors.Is(err, ledger.ErrClosed) {
				return nil // it goes on where the job goes on
			}
			return err
		})
	}
	f.last = nil
}

// myTurn reports whether this node is to take a backfill on that nobody has looked at for so long, ms.
func (f *feeder) myTurn(j *work.Job, age int64) bool {
	return f.l.Nodes.Owns(j) || age >= 4*max(f.l.SweepEvery, f.l.Grace).Milliseconds()
}

func (f *feeder) one(ctx context.Context, j *work.Job, b ledger.Backfill) error {
	if b.State == ledger.BackfillCancelled { // whoever cancelled it may have died
		if err := f.l.Ledger.CancelRuns(ctx, b); err != nil {
			return err
		}
	}
	b, status, err := f.l.Ledger.Feed(ctx, b, j.Digest, nextTicks(j, b))
	if err != nil || status != ledger.BackfillEnded {
		return err
	}
	f.l.Log.Info("backfill ended", "job", b.Job, "backfill", b.ID, "state", b.State, "ended", b.Tally(), "ticks", b.Total)
	err = f.l.Ledger.Audit(ctx, ledger.Action{
		Author: b.Author, Via: "node " + f.l.Name, Name: "jobs backfill", Target: b.Job, Detail: b.ID + " is " + b.State + ": " + b.Tally(),
	})
	if err != nil {
		f.l.Log.Warn("the end of a backfill is missing in the audit", "job", b.Job, "backfill", b.ID, "err", err)
	}
	return nil
}

// nextTicks are the next ticks of a backfill, up to one more than Parallel.
func nextTicks(j *work.Job, b ledger.Backfill) (ticks []int64) {
	if b.Next == 0 {
		return nil
	}
	for at := time.UnixMilli(b.Next - 1); len(ticks) <= b.Parallel; {
		tick := j.Schedule.Next(at)
		if tick.IsZero() || tick.UnixMilli() > b.To {
			break
		}
		ticks, at = append(ticks, tick.UnixMilli()), tick
	}
	return ticks
}
