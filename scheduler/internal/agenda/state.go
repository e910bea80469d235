package agenda

import (
	"container/heap"

	"github.com/escapement/escapement/scheduler/internal/work"
)

// state is how a job stands.
//
//	outside ── registered ──► idle ── due, and a slot is free ──► claiming
//	   ▲                       ▲                                     │
//	   │                       └──── granted, skipped, moved, ... ───┤
//	   └──────────── superseded, vanished, foreign ──────────────────┘
type state struct {
	*work.Job

	cursor   int64 // as last heard, ms; 0 when the schedule has no more
	outlook  outlook
	refused  int   // plans in a row that the ledger refused for no reason that this node can see
	at       int64 // when it is looked at next, ms; may lie after cursor for a retry
	place    int   // index in the heap, -1 outside
	owned    bool  // this node goes first; for a tick of a sharded job, several do
	mine     []int // of a sharded job: the shards for which this node goes first
	claiming bool  // a claim of it is in flight
	outside  bool  // not to be claimed until it is registered
	// It was found held, so until then, ms, the next is not asked for: its ticks, and its pending runs,
	// of which the one that was asked for last has waited since then.
	heldUntil, putOff, pendingSince int64
	holder                          string // the run that held it then
	wanted                          int64  // when a pending run of it was found to wait for the job last, ms

	ended  int64 // what ends was when it was last claimed
	ends   int64 // counts its runs that ended on this node
	waited bool  // something was put off because the job was held
}

// before says whether the agenda looks at j before it looks at other. No two jobs of a node are
// equal, so the order does not depend on how they came. Of those that are due at one instant, those of one partition come together:
// when the node has few slots left, they still make one batch and not many, and so do their ends.
func (j *state) before(other *state) bool {
	switch {
	case j.at != other.at:
		return j.at < other.at
	case j.Part != other.Part:
		return j.Part < other.Part
	}
	return j.Index < other.Index
}

// heapOf are the jobs that this node will claim, by when it looks at them next.
type heapOf []*state

func (a heapOf) Len() int           { return len(a) }
func (a heapOf) Less(i, j int) bool { return a[i].before(a[j]) }
func (a heapOf) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

// Push is for container/heap; use put.
func (a *heapOf) Push(x any) {
	j, _ := x.(*state)
	j.place = len(*a)
	*a = append(*a, j)
}

// Pop is for container/heap; use drop.
func (a *heapOf) Pop() any {
	old := *a
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	j.place = -1
	return j
}

// put adds a job for the instant at (ms), or moves it there.
func (a *heapOf) put(j *state, at int64) {
	j.at = at
	if j.place >= 0 {
		heap.Fix(a, j.place)
		return
	}
	heap.Push(a, j)
}

// drop takes a job out, if it is in.
func (a *heapOf) drop(j *state) {
	if j.place >= 0 {
		heap.Remove(a, j.place)
	}
}

// first is the job to look at next, nil when there is none.
func (a heapOf) first() *state {
	if len(a) == 0 {
		return nil
	}
	return a[0]
}
