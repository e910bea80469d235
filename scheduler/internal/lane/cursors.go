package lane

import (
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// cursors are where the jobs of this node stand, as far as answers of Redis have told it.
type cursors struct {
	mu  sync.Mutex
	all map[*work.Job]*heard // of those that are registered
}

// heard is what is known of one job.
type heard struct {
	cursor, at int64 // where it stood, and when, both ms of Redis' time; a cursor of 0: the schedule has no more
	asked      int64 // the cursor from which this node asks for a tick, while it does
}

// Registered takes up that a job is registered, and its cursor. What is known already is newer than the answer of a Redis that may have lost it.
func (n *Lanes) Registered(j *work.Job, cursor int64) {
	c, now := &n.cursors, n.Clock.Now().UnixMilli()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[j] == nil {
		c.all[j] = &heard{cursor: cursor, at: now}
	}
}

// Displaced takes up that another definition of a job is the stored one, or that this node has given the job up: of its cursor the
// node knows nothing.
func (n *Lanes) Displaced(j *work.Job) {
	n.cursors.mu.Lock()
	defer n.cursors.mu.Unlock()
	delete(n.cursors.all, j)
}

// of is what is known of a job; of one that is not registered nothing, and what is noted there is forgotten.
func (c *cursors) of(j *work.Job) *heard {
	if h := c.all[j]; h != nil {
		return h
	}
	return &heard{}
}

// asking takes up that ticks are asked for.
func (c *cursors) asking(b *work.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range b.Claims {
		if !b.Claims[i].Pending {
			c.of(b.Jobs[i]).asked = b.Claims[i].From
		}
	}
}

// came takes up that claims are asked for no more.
func (c *cursors) came(b *work.Batch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, j := range b.Jobs {
		c.of(j).asked = 0
	}
}

// answered takes up what claims that were sent at an instant, ms, were answered. Where a granted run leads is taken up when it is here.
func (c *cursors) answered(b *work.Batch, sent int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, a := range b.Answers {
		h, claim := c.of(b.Jobs[i]), &b.Claims[i]
		switch {
		case a.Verdict == ledger.Stale, !claim.Pending && (a.Verdict == ledger.Opened || a.Verdict == ledger.Skipped || a.Verdict == ledger.Passed):
			h.cursor, h.at = a.Cursor, sent
		case a.Verdict == ledger.Held && !claim.Pending && claim.From != 0:
			h.cursor, h.at = claim.From, sent
		}
	}
}

// stepped takes up the step of the cursor that a granted run stands for.
func (c *cursors) stepped(g work.Grant, now int64) {
	if g.Lease.Prev == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.of(g.Job); !g.WasPending || h.cursor < g.Lease.Next {
		h.cursor, h.at = g.Lease.Next, now
	}
}

// back takes back the step of a run that is handed back: until another node is granted it, nobody knows of it.
func (c *cursors) back(g work.Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h := c.of(g.Job); g.Lease.Prev != 0 && h.cursor == g.Lease.Next {
		h.cursor = g.Lease.Tick
	}
}

// overdue takes up that cursors were seen where they were believed to be.
func (c *cursors) overdue(jobs *work.Jobs, late []ledger.Late, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range late {
		if h := c.all[jobs.Named(l.Job)]; h != nil && h.cursor == l.Cursor {
			h.at = now
		}
	}
}

// recollect is what a Redis is told of a job where the one before it was heard of last at an instant, ms; false when there is nothing to
// tell. A tick that came due before that may have been another node's, unless it was seen overdue or this node asks for it.
func (c *cursors) recollect(j *work.Job, last int64, fresh time.Duration) (r ledger.KnownCursor, some bool) {
	c.mu.Lock()
	h := *c.of(j)
	c.mu.Unlock()
	if h.cursor == 0 || j.Schedule == nil {
		return r, false
	}
	r = ledger.KnownCursor{Job: j.Name, Digest: j.Digest, Cursor: h.cursor, Heard: true}
	if h.cursor < last && h.asked != h.cursor && h.at < last-fresh.Milliseconds() {
		r.Cursor, r.Heard = work.Millis(j.Schedule.Next(time.UnixMilli(last-1))), false
	}
	return r, r.Cursor != 0
}

// has says whether a job is registered.
func (c *cursors) has(j *work.Job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[j] != nil
}
