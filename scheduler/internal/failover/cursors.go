package failover

import (
	"sync"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Cursors are the cursors of this node's jobs, as Redis' answers have shown them.
type Cursors struct {
	mu  sync.Mutex
	all map[*work.Job]*knownCursor // the registered jobs
}

// knownCursor is the last known cursor of one job.
type knownCursor struct {
	cursor, at  int64 // cursor is 0 when the schedule has no more ticks; at is when it was last seen; both ms of Redis' time
	opened      int64 // the cursor after the last tick of which this node was granted a shard, ms; 0 for none
	claimedFrom int64 // the cursor from which this node claims a tick at the moment
}

// Registered notes a registered job's cursor at an instant, ms. A cursor that is known already is newer than the
// answer of a Redis that may have lost data.
func (c *Cursors) Registered(j *work.Job, cursor, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[j] == nil {
		c.all[j] = &knownCursor{cursor: cursor, at: now}
	}
}

// Displaced notes that another definition of a job is stored, or that the job was removed. Its
// cursor is unknown from then on.
func (c *Cursors) Displaced(j *work.Job) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, j)
}

// of is the known cursor of a job. For a job that is not registered, changes of the result have no
// effect.
func (c *Cursors) of(j *work.Job) *knownCursor {
	if h := c.all[j]; h != nil {
		return h
	}
	return &knownCursor{}
}

// Asking notes the cursors from which ticks are claimed.
func (c *Cursors) Asking(b *work.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range b.Claims {
		if !b.Claims[i].Pending {
			c.of(b.Jobs[i]).claimedFrom = b.Claims[i].From
		}
	}
}

// Finished notes that claims are finished. For claims without an answer this node is still certain that it was granted nothing.
func (c *Cursors) Finished(b *work.Batch) {
	if b.Err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range b.Jobs {
		c.of(j).claimedFrom = 0
	}
}

// answered notes the cursors in the answers to claims that were sent at an instant (ms). A granted
// run's step is noted when the run is active.
func (c *Cursors) answered(b *work.Batch, sent int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, a := range b.Answers {
		h, request := c.of(b.Jobs[i]), &b.Claims[i]
		switch {
		case a.Verdict == claim.Stale, !request.Pending && (a.Verdict == claim.Skipped || a.Verdict == claim.RecordedOnly):
			h.cursor, h.at = a.Cursor, sent
		case a.Verdict == claim.Opened && !request.Pending:
			h.cursor, h.at = request.Tick, sent // the nodes that are granted its shards report them, and with them the step
		case a.Verdict == claim.JobBusy && !request.Pending && request.From != 0:
			h.cursor, h.at = request.From, sent
		}
	}
}

// stepped notes the step of the cursor that comes with a granted run.
func (c *Cursors) stepped(g work.Grant, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.of(g.Job)
	if t := g.Lease.Trigger; g.Lease.TickID != "" && g.Job.Schedule != nil && (t == jobs.TriggerSchedule.String() || t == jobs.TriggerCatchUp.String()) {
		h.opened = max(h.opened, work.Millis(g.Job.Schedule.Next(time.UnixMilli(g.Lease.Tick))))
	}
	if g.Lease.Prev == 0 {
		return
	}
	if !g.WasPending || h.cursor < g.Lease.Next {
		h.cursor, h.at = g.Lease.Next, now
	}
}

// Undo undoes the step of a run that is handed back: until another node is granted it, no node
// would report it.
func (c *Cursors) Undo(g work.Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.of(g.Job); g.Lease.Prev != 0 && h.cursor == g.Lease.Next {
		h.cursor = g.Lease.Tick
	}
}

// Overdue notes cursors that a sweep has seen unchanged.
func (c *Cursors) Overdue(jobs *work.Jobs, late []query.Late, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range late {
		if h := c.all[jobs.Named(l.Job)]; h != nil && h.cursor == l.Cursor {
			h.at = now
		}
	}
}

// recollect is the report about a job to a Redis whose predecessor last answered at an instant
// (ms); false when there is nothing to report. Ticks that were due before that instant may have
// been granted to other nodes, unless they were seen overdue or this node claims them. In doubt it
// reports the first tick from that instant on.
func (c *Cursors) recollect(j *work.Job, last int64, fresh time.Duration) (r epoch.KnownCursor, some bool) {
	c.mu.Lock()
	h := *c.of(j)
	c.mu.Unlock()
	if h.cursor == 0 || j.Schedule == nil {
		return r, false
	}
	r = epoch.KnownCursor{Job: j.Name, Digest: j.Digest, Cursor: h.cursor, Confirmed: true, Sharded: j.Shards > 1}
	if h.cursor < last && h.claimedFrom != h.cursor && h.at < last-fresh.Milliseconds() {
		r.Cursor, r.Confirmed = work.Millis(j.Schedule.Next(time.UnixMilli(last-1))), false
	}
	if h.opened > r.Cursor && r.Cursor != 0 {
		r.Opened = h.opened
	}
	return r, r.Cursor != 0
}

// IsRegistered reports whether a job is registered.
func (c *Cursors) IsRegistered(j *work.Job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[j] != nil
}
