package lane

import (
	"errors"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// flightState is how far a batch of claims is.
type flightState uint8

const (
	unsent   flightState = iota // no request was carried out
	claiming                    // requests may be granted
	asking                      // requests only look for earlier grants
	over                        // the answers are certain, or the batch was given up
)

// String is the state's name.
func (s flightState) String() string {
	return [...]string{"unsent", "claiming", "asking", "over"}[s]
}

// flight is a batch of claims in flight.
//
//	unsent ── the node drains, the claims are old, or their partition is blocked ──► over, with ErrNotSent
//	  │  ▲
//	  │  │ held, and no earlier request can have been carried out
//	  ▼  │
//	claiming ── accepted, refused, or migrating before any request was in doubt ──► over
//	  │
//	  │ MaxSkew after the first request
//	  ▼
//	asking ── granted, refused, a no that is final, or held or migrating before any request was in doubt ──► over
//
//	claiming, asking ── the node drains, 3 MaxSkew after the first request ──► over, with the last error
//
// A copy of a request can be granted until MaxSkew after it was sent; later the clock check refuses
// it. Ticks also become old while Redis is unreachable. So requests that can be granted are sent
// for MaxSkew only. After that the batch only checks whether it was granted, and a no is final when
// no copy can be under way any more. A refused batch goes back to the agenda, so that it keeps no
// other waiting.
type flight struct {
	*work.Batch
	skew          time.Duration // MaxSkew
	state         flightState
	requests      int       // since the batch was last held
	lastGrantable time.Time // when the last request was sent that may be granted
	detached      bool      // the batch has a goroutine of its own, and follows its partition to other masters
}

// depart prepares the next request and returns the state in which it is sent. blocked: nothing may be sent for the first time.
func (f *flight) depart(now time.Time, blocked bool) flightState {
	if f.state == unsent {
		if blocked || now.Sub(f.Created) > 2*f.skew {
			f.Err, f.state = work.ErrNotSent, over
			return over
		}
		f.FirstSent, f.Suspended, f.state = now, locking.Slept(), claiming
	}
	if f.LastSent = now; now.Sub(f.FirstSent) > f.skew {
		f.state = asking
	} else {
		f.lastGrantable = now
	}
	f.requests++
	return f.state
}

// arrive takes the reply to a request and returns the state after it.
func (f *flight) arrive(r reply, now time.Time, draining bool) flightState {
	switch r {
	case accepted:
		if f.state == claiming || now.Sub(f.lastGrantable) > 2*f.skew || !f.inconclusive() {
			f.state = over
		}
	case refused:
		f.state = over
	case held, migrating:
		switch f.requests = 0; {
		case f.Unanswered:
		case r == held && f.state == asking: // nothing was carried out, and nothing can be granted any more
			f.Err, f.state = work.ErrNotSent, over
		case r == held:
			f.state, f.FirstSent = unsent, time.Time{}
		default:
			f.state = over
		}
	case unreachable:
		f.Unanswered = true
	case clockRefused:
	}
	if draining && f.state != unsent && now.Sub(f.FirstSent) > 3*f.skew {
		f.state = over
	}
	f.Repeated = f.Repeated || f.state != over
	return f.state
}

// inconclusive reports whether a tick's question was answered no, while another copy of the claim
// may still be granted.
func (f *flight) inconclusive() bool {
	for i, a := range f.Answers {
		if !f.Claims[i].Pending && (a.Verdict == claim.Stale || a.Verdict == claim.Closed) {
			return true
		}
	}
	return false
}

// askOnly turns claims of ticks into questions: without a cursor nothing is granted, but an earlier
// grant is found by its run id. Claims of pending runs stay claims, and may have expired.
func (f *flight) askOnly(now int64) {
	for i := range f.Claims {
		f.Claims[i].From = 0
		if f.Claims[i].Pending {
			f.Claims[i] = work.Expired(f.Claims[i], f.StartBy[i], now)
		}
	}
}

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
