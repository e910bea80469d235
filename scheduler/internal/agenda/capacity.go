package agenda

import (
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
)

// fullReasons maps an answer's Detail to why a claim waits for room in the ledger.
var fullReasons = map[string]string{
	claim.HeldByOutbox: "10,000 ticks of its partition wait to be told to jobs that follow; start nodes that hold these, or `jobs delete` them",
	claim.HeldByPartition: "10,000 runs wait in its partition, delayed ones included; start nodes that may run them, cancel some, " +
		"or plan fewer so far ahead",
}

// logFull logs, at most every ten seconds, that jobs wait for room in the ledger.
func (a *Agenda) logFull(j *jobState, holder string) {
	if wait, none := fullReasons[holder]; none && time.Since(a.loggedFull) >= logEvery {
		a.loggedFull = time.Now()
		a.Log.Warn("a job waits for room in the ledger, and others of its partition may as well", "job", j.Name, "because", wait)
	}
}
