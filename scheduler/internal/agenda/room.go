package agenda

import (
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// noRoom says what a claim waits for that is held back for want of room in the ledger, by the answer's Detail.
var noRoom = map[string]string{
	ledger.HeldByOutbox: "10,000 ticks of its partition are to be told to jobs that follow; start nodes that hold these, or `jobs remove` them",
	ledger.HeldByPartition: "10,000 runs wait in its partition, delayed ones included; start nodes that may run them, cancel some, " +
		"or plan fewer so far ahead",
}

// sayNoRoom says that a job waits for room, which others may have taken: once in a while, for it is asked for again and again.
func (e *Agenda) sayNoRoom(j *state, holder string) {
	if wait, none := noRoom[holder]; none && time.Since(e.saidNoRoom) >= sayAgain {
		e.saidNoRoom = time.Now()
		e.Log.Warn("a job waits for room in the ledger, and others of its partition may as well", "job", j.Name, "because", wait)
	}
}
