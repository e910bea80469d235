package agenda

import (
	"slices"

	"github.com/escapement/escapement/scheduler/internal/work"
)

// jobState is the agenda's state of one job.
//
//	unclaimable ── registered ──► idle ── due, and a slot is free ──► claiming
//	   ▲                           ▲                                     │
//	   │                           └──── granted, skipped, stale, ... ───┤
//	   └──────────── superseded, lost, unknown format ───────────────────┘
type jobState struct {
	*work.Job

	tick    candidate
	pending []*candidate // its pending runs; pendingShare at most, and the claimed one

	cursor      int64 // as last known, ms; 0 when the schedule has no more ticks
	windows     windows
	refused     int   // plans in a row that the ledger refused for no reason known to this node
	owned       bool  // this node goes first; for a tick of a sharded job, several nodes do
	ownShards   []int // the shards for which this node goes first
	claiming    bool  // a tick or a pending run of it is claimed
	unclaimable bool  // not to be claimed until it is registered
	removed     bool  // the node does not have it any more
	inFlight    int   // claims in flight
	// Until then (ms) its ticks, and its pending runs, are not claimed, because it was held.
	tickHeldUntil, pendingHeldUntil int64
	holder                          string // the run that held it then
	pendingHeldAt                   int64  // when a pending run of it was last found held, ms

	endsAtClaim int64 // ends at the last claim
	ends        int64 // how many of its runs have ended on this node
	deferred    bool  // something was put off because the job was held
}

// add adds a job, which is not registered yet.
func (a *Agenda) add(j *work.Job) {
	s := &jobState{Job: j, unclaimable: true}
	s.tick = candidate{job: s, index: -1}
	a.states[j], a.byName[j.Name] = s, s
	a.order = append(a.order, s)
}

// remove removes jobs. Their claims in flight are still answered, and their granted runs go on.
func (a *Agenda) remove(list []*work.Job) {
	if len(list) == 0 {
		return
	}
	for _, j := range list {
		s := a.states[j]
		s.unclaimable, s.removed = true, true
		a.queue.drop(&s.tick)
		if a.byName[j.Name] == s { // else its successor has the name already
			delete(a.byName, j.Name)
		}
	}
	for _, c := range a.waiting {
		if c.job.removed && !c.inFlight {
			a.forget(c)
		}
	}
	a.order = slices.DeleteFunc(a.order, func(o *jobState) bool { return o.removed })
	for _, j := range list {
		a.countAnswers(a.states[j], 0)
	}
}

// countAnswers counts answers to claims of a job. The last one forgets a removed job.
func (a *Agenda) countAnswers(s *jobState, n int) {
	if s.inFlight -= n; s.removed && s.inFlight == 0 {
		delete(a.states, s.Job)
	}
}
