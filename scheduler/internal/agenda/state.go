package agenda

import (
	"slices"

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

	tick    candidate
	pending []*candidate // its runs that wait for a node; at most pendingShare, and one that is asked for

	cursor   int64 // as last heard, ms; 0 when the schedule has no more
	outlook  outlook
	refused  int   // plans in a row that the ledger refused for no reason that this node can see
	owned    bool  // this node goes first; for a tick of a sharded job, several do
	mine     []int // of a sharded job: the shards for which this node goes first
	claiming bool  // its tick or a pending run of it is asked for
	outside  bool  // not to be claimed until it is registered
	gone     bool  // the node does not have it any more
	asks     int   // claims in flight
	// It was found held, so until then, ms, the next is not asked for: its ticks, and its pending runs.
	heldUntil, putOff int64
	holder            string // the run that held it then
	wanted            int64  // when a pending run of it was found to wait for the job last, ms

	ended  int64 // what ends was when it was last claimed
	ends   int64 // counts its runs that ended on this node
	waited bool  // something was put off because the job was held
}

// add takes up a job, which is not registered yet.
func (e *Agenda) add(j *work.Job) {
	s := &state{Job: j, outside: true}
	s.tick = candidate{job: s, place: -1}
	e.states[j], e.byName[j.Name] = s, s
	e.order = append(e.order, s)
}

// remove gives a job up. What is asked for is heard yet, and what was granted goes on.
func (e *Agenda) remove(j *work.Job) {
	s := e.states[j]
	s.outside, s.gone = true, true
	e.queue.drop(&s.tick)
	for _, c := range e.waiting {
		if c.job == s && !c.asked {
			e.forget(c)
		}
	}
	e.order = slices.DeleteFunc(e.order, func(o *state) bool { return o == s })
	delete(e.byName, j.Name)
	e.heard(s, 0)
}

// heard counts answers to claims of a job. With the last one a job that was removed is forgotten.
func (e *Agenda) heard(s *state, n int) {
	if s.asks -= n; s.gone && s.asks == 0 {
		delete(e.states, s.Job)
	}
}
