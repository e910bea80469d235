package scheduler

import (
	"container/heap"

	"github.com/escapement/escapement/jobs"
)

// job is what the engine knows of one job. Only the engine's goroutine touches the fields below
// the empty line.
//
//	outside ── registered ──► idle ── due, and a slot is free ──► claiming
//	   ▲                       ▲                                     │
//	   │                       └──── granted, skipped, moved, ... ───┤
//	   └──────────── superseded, vanished, foreign ──────────────────┘
type job struct {
	jobs.Job
	schedule *jobs.Schedule // nil for one that follows another job
	def      jobs.Definition
	digest   string
	part     int
	index    int  // among the node's jobs, by name; decides where nothing else does
	followed bool // another job of the node follows it

	cursor   int64 // as last heard, ms; 0 when the schedule has no more
	outlook  outlook
	refused  int   // plans in a row that the ledger refused for no reason that this node can see
	at       int64 // when the engine looks at it next, ms; may lie after cursor for a retry
	place    int   // index in the heap, -1 outside
	owned    bool  // this node goes first; for a tick of a sharded job, several do
	mine     []int // of a sharded job: the shards for which this node goes first
	claiming bool  // a claim of it is in flight
	outside  bool  // not to be claimed until it is registered, see registrar
	// It was found held, so until then, ms, the next is not asked for: its ticks, and its pending runs,
	// of which the one that was asked for last has waited since then.
	heldUntil, putOff, pendingSince int64
	holder                          string // the run that held it then
	dropAfter                       int64  // the pending run that is being asked for comes too late after that, ms; 0: never

	ended  int64 // what ends was when it was last claimed
	ends   int64 // counts its runs that ended on this node
	waited bool  // something was put off because the job was held
}

// attempts is how often one tick may be granted before a crash ends it.
func (j *job) attempts() int {
	if j.OnCrash == jobs.OnCrashRerun {
		return 1 + j.RerunMax
	}
	return 1
}

// before says whether the engine looks at j before it looks at other. No two jobs of a node are
// equal, so the order does not depend on how they came. Of those that are due at one instant, those of one partition come together:
// when the node has few slots left, they still make one batch and not many, and so do their ends.
func (j *job) before(other *job) bool {
	switch {
	case j.at != other.at:
		return j.at < other.at
	case j.part != other.part:
		return j.part < other.part
	}
	return j.index < other.index
}

// agenda is a heap of the jobs this node will claim, by when it looks at them next.
type agenda []*job

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].before(a[j]) }
func (a agenda) Swap(i, j int) {
	a[i], a[j] = a[j], a[i]
	a[i].place, a[j].place = i, j
}

// Push is for container/heap; use put.
func (a *agenda) Push(x any) {
	j, _ := x.(*job)
	j.place = len(*a)
	*a = append(*a, j)
}

// Pop is for container/heap; use take.
func (a *agenda) Pop() any {
	old := *a
	j := old[len(old)-1]
	old[len(old)-1] = nil
	*a = old[:len(old)-1]
	j.place = -1
	return j
}

// put adds a job for the instant at (ms), or moves it there.
func (a *agenda) put(j *job, at int64) {
	j.at = at
	if j.place >= 0 {
		heap.Fix(a, j.place)
		return
	}
	heap.Push(a, j)
}

// drop takes a job out, if it is in.
func (a *agenda) drop(j *job) {
	if j.place >= 0 {
		heap.Remove(a, j.place)
	}
}

// first is the job to look at next, nil when there is none.
func (a agenda) first() *job {
	if len(a) == 0 {
		return nil
	}
	return a[0]
}

// take removes and returns the first job.
func (a *agenda) take() *job {
	j, _ := heap.Pop(a).(*job)
	return j
}
