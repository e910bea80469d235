// Package failover has the states of a node towards the epochs of a partition. An epoch is one server and one incarnation of the
// partition. It ends when Redis is restarted, replaced by a replica, emptied, or has lost records.
//
//	Unknown ── Notice ──► Asserting ── Asserted ──► Restoring ── Restored ──► Waiting ── Open ──► Open
//	   │                    ▲    ▲                      │                       ▲              │
//	   │                    │    └─────── Repeat ───────┘                       │              │
//	   │                    └───────── Notice, of another epoch, from any state ┼──────────────┘
//	   └─────────────────────────────────── Join ───────────────────────────────┘
//
// Asserting: the node has reported nothing in this epoch. It claims, renews and settles nothing, because Redis would answer that there is
// no such run. Restoring: all runs were reported once, and some wait for the reports of other nodes. Renewals and reports of ends go on.
// Waiting: all runs of this node are in place. Open: all other nodes have got as far, or the hold is over; the node claims.
//
// A node that joins has nothing to report, and waits for the other nodes.
package failover

// State is how far a node is with an epoch.
type State uint8

// The states, in their order.
const (
	Unknown   State = iota // no epoch is known
	Asserting              // nothing was reported in this epoch yet
	Restoring              // all runs were reported once
	Waiting                // all runs are in place
	Open                   // the node claims
)

// String is the state's name.
func (s State) String() string {
	return [...]string{"unknown", "asserting", "restoring", "waiting", "open"}[s]
}

// Epoch is a node's state towards the current epoch of one partition. The zero Epoch is Unknown. It is not safe for concurrent use.
type Epoch struct {
	id, was    string // this epoch, and the last open one
	state      State
	lastAnswer int64 // when an open epoch last answered, ms of Redis' time; 0: never
}

// ID is the id of the epoch; "" while none is known.
func (e *Epoch) ID() string { return e.id }

// State is how far the node is.
func (e *Epoch) State() State { return e.state }

// Was is the id of the last epoch in which the node claimed; "" for none.
func (e *Epoch) Was() string { return e.was }

// LastAnswer is when Redis last answered in an open epoch, ms of Redis' time; 0: never.
func (e *Epoch) LastAnswer() int64 { return e.lastAnswer }

// Notice takes an epoch's id from an answer and reports whether another epoch has begun.
func (e *Epoch) Notice(id string) bool {
	if e.id == id {
		return false
	}
	e.id = id
	//guard:back-is-new P1 nothing is claimed in another epoch before runs are reported in it; also in an earlier epoch that has come back, as after a split
	e.state = Asserting
	return true
}

// Leave notes that the partition has another master, whose epoch is not known yet.
func (e *Epoch) Leave() { e.id, e.state = "", Asserting }

// Join begins with an epoch in which the node was granted nothing.
func (e *Epoch) Join(id string) { e.id, e.state = id, Waiting }

// Asserted notes that all runs were reported once.
func (e *Epoch) Asserted() { e.reach(Restoring) }

// Restored notes that all runs are in place.
func (e *Epoch) Restored() { e.reach(Waiting) }

// Open notes that the node may claim.
func (e *Epoch) Open() {
	if e.reach(Open); e.state == Open {
		e.was = e.id
	}
}

// reach goes on to a state, unless that is behind, or no epoch is known: nothing was reported in one.
func (e *Epoch) reach(s State) {
	//guard:unknown-waits P1 a partition whose epoch is not known is not claimed from
	if e.id == "" {
		return
	}
	e.state = max(e.state, s)
}

// Repeat makes the node report all its runs again, unless all are in place.
func (e *Epoch) Repeat() {
	if e.state == Restoring {
		e.state = Asserting
	}
}

// Answered notes that Redis has answered in an epoch.
func (e *Epoch) Answered(id string, now int64) {
	if e.state == Open && e.id == id {
		e.lastAnswer = now
	}
}
