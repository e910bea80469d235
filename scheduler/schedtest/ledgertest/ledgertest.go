// Package ledgertest lets a test put jobs and runs into any state, by the same calls of the ledger
// as nodes make, without a node and without waiting for one. Package scheduler/internal/ledger
// documents each of them.
package ledgertest

import "github.com/escapement/escapement/scheduler/internal/ledger"

// A namespace, and requests to it.
type (
	// Ledger is a client of one namespace.
	Ledger = ledger.Ledger
	// Config is how Open finds the namespace, or creates it.
	Config = ledger.Config
	// Definition is a job to define.
	Definition = ledger.Definition
	// Claimer is the node that claims.
	Claimer = ledger.Claimer
	// Claim requests a tick or a pending run.
	Claim = ledger.Claim
	// Pass is a range of ticks that a claim records and does not run.
	Pass = ledger.SkippedRange
	// Report ends a run.
	Report = ledger.Report
	// Return hands a run back.
	Return = ledger.Return
	// Rewind sets a job's cursor back.
	Rewind = ledger.Rewind
)

// Verdict is the answer to a Claim.
type Verdict = ledger.Verdict

// Answers of Claim, Settle, Unclaim and Rewind.
const (
	Granted  = ledger.Granted
	Opened   = ledger.Opened
	Passed   = ledger.RecordedOnly
	Settled  = ledger.Settled
	Returned = ledger.Returned
	Rewound  = ledger.Rewound
)

// ReasonLate is the reason of ticks that were missed because no node claimed them in time.
const ReasonLate = ledger.ReasonLate

// Calls that need no ledger to be open.
var (
	// Open opens a namespace, and makes it when it is new.
	Open = ledger.Join
	// Partition is the partition of a job among so many.
	Partition = ledger.Partition
	// Scripts are all scripts.
	Scripts = ledger.Scripts
	// NextAttemptID is the run id of the attempt that follows a run, and of a run that was handed back.
	NextAttemptID = ledger.NextAttemptID
	// UniqueRun is the run id of a request with a unique key.
	UniqueRun = ledger.UniqueRun
)
