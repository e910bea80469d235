package agenda

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// kind is what a candidate is. Each has a heap of the queue.
type kind uint8

const (
	tick    kind = iota // the next tick of a job; its candidate lives as long as the job
	pending             // a run that waits for a node
	shard               // a pending run that is a shard of an open tick
	kinds
)

// kindOf is what a run is that waits.
func kindOf(p *ledger.Lease) kind {
	if p.Of != "" {
		return shard
	}
	return pending
}

// candidate is what may be asked for. A pending run or a shard that is answered leaves, unless its job is held; so does one that a
// sweep no longer finds.
type candidate struct {
	job    *state
	run    *ledger.Lease // what is pending; nil for a tick
	kind   kind
	asked  bool  // its claim is in flight
	place  int   // index in its heap, -1 outside
	at     int64 // when it is looked at next, ms
	asleep int64 // a pause holds it: not before, ms
}

// first says whether what is pending is a shard that this node goes first for.
func (j *state) first(p *ledger.Lease) bool { return p.Of != "" && slices.Contains(j.mine, p.Shard) }

// before says whether the agenda looks at c before it looks at another one of its kind. No two are equal, so the order does not
// depend on how they came. Of ticks that are due at one instant, those of one partition come together: when the node has few slots
// left, they still make one batch and not many, and so do their ends.
func (c *candidate) before(other *candidate) bool {
	switch {
	case c.at != other.at:
		return c.at < other.at
	case c.kind != tick:
		a, b := c.run, other.run
		return cmp.Or(cmp.Compare(a.Granted, b.Granted), cmp.Compare(a.Shard, b.Shard), strings.Compare(a.Run, b.Run)) < 0
	case c.job.Part != other.job.Part:
		return c.job.Part < other.job.Part
	}
	return c.job.Index < other.job.Index
}

// queue is what may be asked for, of each kind by when it is looked at next.
type queue struct {
	heaps [kinds]heapOf
	last  kind // tick or shard: which of them was taken last
}

// next is the candidate to ask for, nil when none is due: pending runs first, so that a busy node does not put them off for ever;
// shards and ticks by turns, so that a job with more shards than the node has slots does not put off everybody else's ticks, nor
// they its shards. So there is a heap for each kind: one could not say whose turn it is.
func (q *queue) next(now int64) *candidate {
	order := [...]kind{pending, shard, tick}
	if q.last == shard {
		order = [...]kind{pending, tick, shard}
	}
	for _, k := range order {
		if h := q.heaps[k]; len(h) > 0 && h[0].at <= now {
			return h[0]
		}
	}
	return nil
}

// wait is how long until the next candidate becomes due, but at most a time. What is due waits for a slot, and a run's end
// wakes the agenda.
func (q *queue) wait(now time.Time, most time.Duration) time.Duration {
	for _, h := range q.heaps {
		if len(h) > 0 && h[0].at > now.UnixMilli() {
			most = min(most, time.UnixMilli(h[0].at).Sub(now))
		}
	}
	return most
}

// put adds a candidate for the instant at (ms), or moves it there.
func (q *queue) put(c *candidate, at int64) {
	c.at = at
	if c.place >= 0 {
		heap.Fix(&q.heaps[c.kind], c.place)
		return
	}
	heap.Push(&q.heaps[c.kind], c)
}

// drop takes a candidate out, if it is in.
func (q *queue) drop(c *candidate) {
	if c.place >= 0 {
		heap.Remove(&q.heaps[c.kind], c.place)
	}
}

// heapOf is for container/heap; use queue.
type heapOf []*candidate

func (a heapOf) Len() int           { return len(a) }
func (a heapOf) Less(i, j int) bool { return a[i].before(a[j]) }
func (a heapOf) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

func (a *heapOf) Push(x any) {
	c, _ := x.(*candidate)
	c.place = len(*a)
	*a = append(*a, c)
}

func (a *heapOf) Pop() any {
	old := *a
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	c.place = -1
	return c
}
