package lane

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Runner carries out granted runs.
type Runner interface {
	// Start begins a run, or hands it back when the grant has a reason to. False: the run is here
	// already. It does not block.
	Start(g work.Grant) bool
}

// granter makes grants of a batch's answers.
type granter struct {
	ledger *ledger.Ledger
	clock  *Clock
	slots  *agenda.Slots
	inbox  *agenda.Inbox
	by     claim.Claimer
}

// start hands the runs that a batch was granted to the runner.
func (gr *granter) start(to Runner, b *work.Batch) {
	b.Started = make([]bool, len(b.Claims))
	for i := range b.Claims {
		if b.Err != nil || b.Answers[i].Verdict != claim.Granted {
			continue
		}
		slotLost := b.SlotsFreed && !gr.slots.Retake()
		b.Started[i] = to.Start(gr.grant(b, i, slotLost))
		if b.SlotsFreed && !b.Started[i] {
			gr.inbox.Send(agenda.SlotsFreed{Slots: 1})
		}
	}
}

// grant is the grant of one claim of a batch.
func (gr *granter) grant(b *work.Batch, i int, slotLost bool) work.Grant {
	c, a := b.Claims[i], b.Answers[i]
	first := claim.FirstLease(gr.ledger, c.TTL)
	g := work.Grant{
		Job: b.Jobs[i], Lease: c.GrantedRun(a, gr.by, gr.clock.Now().UnixMilli()), Epoch: b.Epoch,
		FirstSent: leaseStart(b, first, a), Suspended: b.Suspended, FirstTTL: first, WasPending: c.Pending,
	}
	// Only ticks of a schedule are granted ahead. A delayed run that was cancelled may be rerun
	// before its time.
	if t := g.Lease.Trigger; t == jobs.TriggerSchedule.String() || t == jobs.TriggerCatchUp.String() {
		g.StartAt = startTime(g.Lease.Tick, a.Left-first, b.LastSent, gr.clock.Past())
	}
	if slotLost {
		g.HandBackReason = "its grant arrived when other runs had all slots"
	}
	//guard:confirm-hands-back P1 a run on too few replicas is not begun, if confirmation is configured
	if a.Unconfirmed != nil {
		g.HandBackReason = "too few replicas have confirmed its grant"
	}
	return g
}

// leaseStart is the instant from which a granted lease counts: before its first request. A pending
// run keeps its id, so the grant may belong to an earlier batch whose answer was lost. Then the
// remaining time of the lease decides.
func leaseStart(b *work.Batch, first time.Duration, a claim.Answer) time.Time {
	if left := b.LastSent.Add(a.Left - first); left.Before(b.FirstSent) {
		return left
	}
	//guard:granted-from-request P4 the lease counts from before the first request, not from the answered one
	if b.FirstSent.Before(b.LastSent) {
		return b.FirstSent
	}
	return b.LastSent
}

// startTime is when a run that was granted ahead may start, ms of this node's estimate of Redis'
// time. It is the tick, or later when Redis' clock has stepped back since the last sample: ahead is
// the remaining time by Redis' own clock, in the answer to the request sent at that instant.
func startTime(tick int64, ahead time.Duration, sent, now time.Time) int64 {
	left := time.UnixMilli(tick).Sub(now)
	if ahead > 0 && left < ahead-time.Since(sent)-time.Millisecond {
		return now.Add(ahead + time.Millisecond).UnixMilli()
	}
	return tick
}
