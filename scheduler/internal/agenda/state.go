package agenda

import "github.com/escapement/escapement/scheduler/internal/work"

// state is how a job stands.
//
//	outside ── registered ──► idle ── due, and a slot is free ──► claiming
//	   ▲                       ▲                                     │
//	   │                       └──── granted, skipped, moved, ... ───┤
//	   └──────────── superseded, vanished, foreign ──────────────────┘
type state struct {
	*work.Job

	tick    candidate
	pending []*candidate // its runs that wait for a node; at most pendingShare, and one that is asked for

	cursor   int64 // as last heard, ms; 0 when the schedule has no more
	outlook  outlook
	refused  int   // plans in a row that the ledger refused for no reason that this node can see
	owned    bool  // this node goes first; for a tick of a sharded job, several do
	mine     []int // of a sharded job: the shards for which this node goes first
	claiming bool  // its tick or a pending run of it is asked for
	outside  bool  // not to be claimed until it is registered
	// It was found held, so until then, ms, the next is not asked for: its ticks, and its pending runs.
	heldUntil, putOff int64
	holder            string // the run that held it then
	wanted            int64  // when a pending run of it was found to wait for the job last, ms

	ended  int64 // what ends was when it was last claimed
	ends   int64 // counts its runs that ended on this node
	waited bool  // something was put off because the job was held
}
