// Package ledgertest lets a test put jobs and runs into any state, by the same calls of the ledger
// as nodes make, without a node and without waiting for one. Package scheduler/internal/ledger
// documents each of them.
package ledgertest

import (
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/operate"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

// A namespace, and requests to it.
type (
	// Ledger is a client of one namespace.
	Ledger = ledger.Ledger
	// Config is how Open finds the namespace, or creates it.
	Config = ledger.Config
	// Definition is a job to define.
	Definition = define.Definition
	// Claimer is the node that claims.
	Claimer = claim.Claimer
	// Claim requests a tick or a pending run.
	Claim = claim.Claim
	// Pass is a range of ticks that a claim records and does not run.
	Pass = ledger.SkippedRange
	// Report ends a run.
	Report = settle.Report
	// Return hands a run back.
	Return = settle.Return
	// Rewind sets a job's cursor back.
	Rewind = operate.RewindRequest
)

// Verdict is the answer to a Claim.
type Verdict = claim.Verdict

// Answers of Claim, Settle, Unclaim and Rewind.
const (
	Granted  = claim.Granted
	Opened   = claim.Opened
	Passed   = claim.RecordedOnly
	Settled  = settle.Settled
	Returned = settle.Returned
	Rewound  = operate.Rewound
)

// ReasonLate is the reason of ticks that were missed because no node claimed them in time.
const ReasonLate = ledger.ReasonLate

// Calls of the ledger.
var (
	// Define stores definitions of jobs.
	Define = define.Define
	// SendClaims requests runs.
	SendClaims = claim.Send
	// Settle ends runs.
	Settle = settle.Settle
	// Unclaim hands runs back.
	Unclaim = settle.Unclaim
	// Rerun requests another attempt of an ended run.
	Rerun = operate.Rerun
	// RewindJob sets a job's cursor back.
	RewindJob = operate.Rewind
	// ReadJob reads a stored job.
	ReadJob = query.Job
	// InFlight reads the runs in flight of jobs.
	InFlight = query.InFlight
	// Open opens a namespace, and makes it when it is new.
	Open = ledger.Join
	// Partition is the partition of a job among so many.
	Partition = ledger.Partition
	// Scripts are all scripts.
	Scripts = ledger.Scripts
	// NextAttemptID is the run id of the attempt that follows a run, and of a run that was handed back.
	NextAttemptID = ledger.NextAttemptID
	// UniqueRun is the run id of a request with a unique key.
	UniqueRun = operate.UniqueRun
)
