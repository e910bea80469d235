package lane

import (
	"errors"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// settling is one report, and who gets its answer.
type settling struct {
	*failover.Ending
	then      work.SettleListener
	slotFreed bool // it holds no slot any more
}

// reportFlight is a batch of reports of one partition in flight.
//
//	  ┌── held, Redis does not answer, or refuses the batch
//	  ▼ │
//	waiting ── recorded ──► over
//	    ├── refused settleTries times, by a Redis that takes other reports ──► over, with the error
//	    └── Terms.Alive has ended ──► over, with errStopped
type reportFlight struct {
	batch    []settling
	reports  []settle.Report
	failures int  // replies since the last held one, itself included; for settleTries and the backoff
	detached bool // the batch has a goroutine of its own, and follows its partition to other masters

	statuses []ledger.Status // the answers
	err      error           // of the last request
}

func newReportFlight(batch []settling) *reportFlight {
	f := &reportFlight{batch: batch, reports: make([]settle.Report, len(batch))}
	for i, b := range batch {
		f.reports[i] = b.Report
	}
	return f
}

func (f *reportFlight) part() int { return f.batch[0].Grant.Job.Part }

// arrive takes the reply to a request and reports whether the batch is over.
func (f *reportFlight) arrive(r reply) (over bool) {
	switch r {
	case accepted:
		return true
	case held, migrating: // the master does not know these runs yet
		f.failures = 0
	case refused, clockRefused, unreachable:
		if f.failures >= settleTries && !errors.Is(f.err, locking.ErrUnreachable) && !redisconn.Full(f.err) && !redisconn.Denied(f.err) {
			return true // Redis takes other reports: this batch must not keep them waiting
		}
	}
	f.failures++
	return false
}

// recorded are the ends that Redis has recorded.
func (f *reportFlight) recorded() (ends []*failover.Ending) {
	for i, status := range f.statuses {
		if status == settle.Settled {
			ends = append(ends, f.batch[i].Ending)
		}
	}
	return ends
}

// answer passes the answers on.
func (f *reportFlight) answer() {
	for i, b := range f.batch {
		if f.err != nil {
			b.then.Settled(b.Report, "", f.err)
		} else {
			b.then.Settled(b.Report, f.statuses[i], nil)
		}
	}
}
