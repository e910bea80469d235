package lane

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/backfill"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// feedFor is how long a sweep feeds backfills: after that no further one is begun with. The next sweep goes on with those.
	feedFor = 300 * time.Millisecond
	// cancelAgain is how long after a cancelled backfill's runs were cancelled the runs still
	// unended are cancelled again: some may have been handed back meanwhile, and a failover may
	// have lost the flag.
	cancelAgain = 5 * time.Second
	// feedRefused is for how long no node can have fed a backfill before that is logged: longer
	// than a deploy takes.
	feedRefused = time.Minute
)

// backfiller feeds the backfills of a lane's partitions. Only nodes can: scripts have no schedules.
// Any node that has the job may, because Feed compares; the job's owner does it at each
// sweep, and other nodes when the backfill was not fed for long.
type backfiller struct {
	ledger    *ledger.Ledger
	epochs    *failover.Epochs
	clock     *Clock
	name      string // the node's
	jobs      *work.Jobs
	owns      func(j *work.Job) bool // this node owns a job
	takesWork func() bool
	lookAfter time.Duration       // how long a backfill is not fed before another node than the owner feeds it
	sweep     chan<- struct{}     // holds one signal: sweep early
	known     *failover.Backfills // to report to a Redis that has lost them
	log       *slog.Logger

	last      []ledger.Backfill               // as the last sweep found them, ordered by job
	withOne   atomic.Pointer[map[string]bool] // the jobs of last
	fed       string                          // the job whose backfill was fed last
	cancelled map[string]time.Time            // when this node cancelled the runs of a backfill, by its id
	logged    map[string]time.Time            // when it was logged that one is not taken on, by its id
}

// seen notes what a sweep found. New backfills are fed by the next sweep, at once.
func (f *backfiller) seen(all []ledger.Backfill) {
	before, now := f.withOne.Load(), make(map[string]bool, len(all))
	for _, b := range all {
		if now[b.Job] = true; before == nil || !(*before)[b.Job] {
			wait.Signal(f.sweep)
		}
	}
	f.last = all
	f.withOne.Store(&now)
}

// ended has the lane sweep at once when a run of a job has ended that has a backfill: its next tick
// may be put into pending.
func (f *backfiller) ended(job string) {
	if now := f.withOne.Load(); now != nil && (*now)[job] {
		wait.Signal(f.sweep)
	}
}

// feed feeds the backfills of the last sweep, before the next sweep reads the pending runs.
func (f *backfiller) feed(ctx context.Context, calls *masterCalls) {
	began, now := time.Now(), f.clock.Now().UnixMilli()
	f.forget()
	at, _ := slices.BinarySearchFunc(f.last, f.fed+"\x00", func(b ledger.Backfill, job string) int { return cmp.Compare(b.Job, job) })
	for _, b := range slices.Concat(f.last[at:], f.last[:at]) {
		j := f.jobs.Named(b.Job)
		if j == nil || j.Schedule == nil && b.Next != 0 || !f.takesWork() || !f.myTurn(j, now-b.Looked) {
			continue
		}
		if time.Since(began) >= feedFor {
			break
		}
		f.fed = b.Job
		calls.ask(ctx, b.Job, func(ctx context.Context) error {
			err := f.one(ctx, j, b, now)
			if errors.Is(err, ledger.ErrClosed) {
				return nil // it goes on where the job goes on
			}
			return err
		})
	}
	f.last = nil
}

// forget forgets backfills that are over.
func (f *backfiller) forget() {
	for _, known := range []map[string]time.Time{f.cancelled, f.logged} {
		maps.DeleteFunc(known, func(id string, _ time.Time) bool {
			return !slices.ContainsFunc(f.last, func(b ledger.Backfill) bool { return b.ID == id })
		})
	}
}

// myTurn reports whether this node is to feed a backfill that was not fed for so long, ms.
func (f *backfiller) myTurn(j *work.Job, age int64) bool {
	return f.owns(j) || age >= f.lookAfter.Milliseconds()
}

// one feeds one backfill.
func (f *backfiller) one(ctx context.Context, j *work.Job, seen ledger.Backfill, now int64) error {
	epoch, may := f.epochs.Claims(j.Part)
	if !may {
		return nil // the next sweep tries again
	}
	b, status, err := backfill.Feed(ctx, f.ledger.At(epoch), seen, j.Digest, j.Shards, nextTicks(j, seen))
	if errors.Is(err, ledger.ErrServer) {
		f.epochs.Recheck()
		return nil
	}
	if err == nil {
		f.known.Fed(j.Part, b, status == backfill.Ended)
	}
	switch {
	case err != nil:
		return err
	case status == backfill.Ended:
		f.end(ctx, b)
	case status == backfill.UnknownFormat, status == backfill.NoJob, status == backfill.Superseded:
		f.logRefused(seen, status, now)
	case b.State == ledger.BackfillCancelled && len(b.Going) > 0 && time.Since(f.cancelled[b.ID]) >= cancelAgain:
		err := backfill.CancelRuns(ctx, f.ledger, b) // the node that cancelled it may have died
		if err == nil {
			f.cancelled[b.ID] = time.Now()
		}
		return err
	case status == backfill.Put && seen.Next == seen.From && backfill.AtOnce(f.ledger, b, j.Shards) < b.Parallel:
		f.log.Warn("a backfill runs fewer ticks at a time than was asked for, because the history keeps too few rows for more; make history.keep larger",
			"job", b.Job, "backfill", b.ID, "parallel", b.Parallel, "at_a_time", backfill.AtOnce(f.ledger, b, j.Shards))
	}
	return nil
}

// end logs the end of a backfill, and notes it in the audit.
func (f *backfiller) end(ctx context.Context, b ledger.Backfill) {
	f.log.Info("backfill ended", "job", b.Job, "backfill", b.ID, "state", b.State, "ended", b.Tally(), "ticks", b.Total)
	err := operate.Audit(ctx, f.ledger, operate.Action{
		Author: b.Author, Via: "node " + f.name, Name: "jobs backfill", Target: b.Job, Detail: b.ID + " is " + b.State + ": " + b.Tally(),
	})
	if err != nil {
		f.log.Warn("the end of a backfill is missing in the audit", "job", b.Job, "backfill", b.ID, "err", err)
	}
}

// feedFaults are the reasons why a backfill is not fed.
var feedFaults = map[ledger.Status]string{
	backfill.UnknownFormat: "the job's entry or history cannot be read; `ledger verify` names what is wrong",
	backfill.NoJob:         "the job has no entry any more; a node that holds the job stores it again",
	backfill.Superseded:    "the stored definition of the job is not this node's; `jobs get` shows which nodes have it",
}

// logRefused logs, once an hour, that a backfill is not fed, and why. Another definition is normal
// during a deploy.
func (f *backfiller) logRefused(b ledger.Backfill, status ledger.Status, now int64) {
	if since, known := f.logged[b.ID]; known && time.Since(since) < noNodeLongest || status == backfill.Superseded && now-b.Looked < feedRefused.Milliseconds() {
		return
	}
	f.logged[b.ID] = time.Now()
	f.log.Warn("a backfill is not taken on", "job", b.Job, "backfill", b.ID, "because", feedFaults[status])
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
