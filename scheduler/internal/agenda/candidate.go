package agenda

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// kind is the kind of a candidate. The queue has a heap for each.
type kind uint8

const (
	tick    kind = iota // a job's next tick; its candidate lives as long as the job
	pending             // a pending run
	shard               // a pending run that is a shard of an open tick
	kinds
)

// kindOf is the kind of a pending run.
func kindOf(p *ledger.Run) kind {
	if p.TickID != "" {
		return shard
	}
	return pending
}

// candidate is something that the node may claim. A pending run or a shard leaves when its claim is
// answered, unless the job is held, and when a sweep no longer finds it.
type candidate struct {
	job         *jobState
	run         *ledger.Run // the pending run; nil for a tick
	kind        kind
	inFlight    bool  // a claim for it is in flight
	index       int   // index in its heap, -1 outside
	at          int64 // when the agenda looks at it next, ms
	pausedUntil int64 // until when a pause holds it, ms
}

// ownsShard reports whether a pending run is a shard for which this node goes first.
func (j *jobState) ownsShard(p *ledger.Run) bool {
	return p.TickID != "" && slices.Contains(j.ownShards, p.Shard)
}

// before orders candidates of one kind. No two are equal, so the order does not depend on how they
// arrived. Ticks of one instant are ordered by partition: a node with few free slots then still
// sends one batch.
func (c *candidate) before(other *candidate) bool {
	switch {
	case c.at != other.at:
		return c.at < other.at
	case c.kind != tick:
		a, b := c.run, other.run
		return cmp.Or(cmp.Compare(a.Granted, b.Granted), cmp.Compare(a.Shard, b.Shard), strings.Compare(a.ID, b.ID)) < 0
	case c.job.Part != other.job.Part:
		return c.job.Part < other.job.Part
	}
	return c.job.Index < other.job.Index
}

// queue holds the candidates. Each kind has a heap, ordered by when the agenda looks at a candidate
// next.
type queue struct {
	heaps    [kinds]candidateHeap
	lastKind kind // tick or shard: the kind that was claimed last
}

// next is the candidate to claim now, nil when none is due. Pending runs come first, so that a busy
// node does not put them off for ever. Shards and ticks alternate, so that neither starves the
// other. This is why each kind has a heap.
func (q *queue) next(now int64) *candidate {
	order := [...]kind{pending, shard, tick}
	if q.lastKind == shard {
		order = [...]kind{pending, tick, shard}
	}
	for _, k := range order {
		if h := q.heaps[k]; len(h) > 0 && h[0].at <= now {
			return h[0]
		}
	}
	return nil
}

// wait is the time until the next candidate becomes due, most at the most. Candidates that are due
// already wait for a slot, and the end of a run wakes the agenda.
func (q *queue) wait(now time.Time, most time.Duration) time.Duration {
	for _, h := range q.heaps {
		if len(h) > 0 && h[0].at > now.UnixMilli() {
			most = min(most, time.UnixMilli(h[0].at).Sub(now))
		}
	}
	return most
}

// put queues a candidate for an instant (ms), or moves it there.
func (q *queue) put(c *candidate, at int64) {
	c.at = at
	if c.index >= 0 {
		heap.Fix(&q.heaps[c.kind], c.index)
		return
	}
	heap.Push(&q.heaps[c.kind], c)
}

// drop takes a candidate out of the queue, if it is in.
func (q *queue) drop(c *candidate) {
	if c.index >= 0 {
		heap.Remove(&q.heaps[c.kind], c.index)
	}
}

// candidateHeap implements container/heap for queue.
type candidateHeap []*candidate

func (a candidateHeap) Len() int           { return len(a) }
func (a candidateHeap) Less(i, j int) bool { return a[i].before(a[j]) }
func (a candidateHeap) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].index, a[j].index = i, j
}

func (a *candidateHeap) Push(x any) {
	c, _ := x.(*candidate)
	c.index = len(*a)
	*a = append(*a, c)
}

func (a *candidateHeap) Pop() any {
	old := *a
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	c.index = -1
	return c
}
