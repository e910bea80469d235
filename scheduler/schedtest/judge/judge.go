// Package judge gives harnesses of their own, such as real processes under real faults, the judge
// that schedtest and `escapement ledger verify` use: evidence in, broken promises out. Package
// scheduler/internal/audit lists the checks.
package judge

import "github.com/escapement/escapement/scheduler/internal/audit"

// The evidence.
type (
	// Case is everything that is judged together.
	Case = audit.Case
	// Job is the evidence about a job beside the books.
	Job = audit.Job
	// Version is a job's definition for the time that it was deployed.
	Version = audit.Version
	// Write is one line that a job's function wrote when a try of a run started or ended.
	Write = audit.Write
	// Phase is the end of a try that a Write reports.
	Phase = audit.Phase
	// Disturbance is a span in which a fault acted.
	Disturbance = audit.Disturbance
	// Cancel is a run that an operator cancelled.
	Cancel = audit.Cancel
	// Request is an operator's request: the run's name and the time.
	Request = audit.Request
	// Span is a stretch of time.
	Span = audit.Span
)

// The phases of a Write.
const (
	Start = audit.Start
	End   = audit.End
)

// The answer.
type (
	// Report is the answer of Check.
	Report = audit.Report
	// Finding is a violation with its evidence.
	Finding = audit.Finding
	// Kind is the kind of a finding.
	Kind = audit.Kind
	// Verdict is the result of a due tick.
	Verdict = audit.Verdict
)

// The kinds of findings. audit.KindTold is left out: without Grants it is never found.
const (
	KindLost          = audit.KindLost
	KindDouble        = audit.KindDouble
	KindEarly         = audit.KindEarly
	KindLate          = audit.KindLate
	KindPhantom       = audit.KindPhantom
	KindContradiction = audit.KindContradiction
	KindUntrue        = audit.KindUntrue
	KindUnwanted      = audit.KindUnwanted
	KindToken         = audit.KindToken
	KindOverlap       = audit.KindOverlap
	KindMixed         = audit.KindMixed
	KindBooks         = audit.KindBooks
)

// The verdicts of ticks that ran, and of ticks without a trace.
const (
	Satisfied = audit.Satisfied
	Delayed   = audit.Delayed
	Vanished  = audit.Vanished
)

// Check compares all evidence of a case. The same case always gives the same report.
func Check(c Case) Report { return audit.Check(c) }

// NewFinding is a finding of a kind, for a harness that sees more than the evidence of a Case.
var NewFinding = audit.NewFinding
