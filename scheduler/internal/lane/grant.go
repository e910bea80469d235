package lane

import (
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Runner carries granted runs.
type Runner interface {
	// Start begins a run, or hands it back when Grant.Back says why; false when that run is here already. It does not block.
	Start(g work.Grant) bool
}

// start hands what a batch was granted to the runner.
func (s sender) start(b *work.Batch) {
	b.Started = make([]bool, len(b.Claims))
	for i := range b.Claims {
		if b.Err != nil || b.Answers[i].Verdict != ledger.Granted {
			continue
		}
		slotLost := b.SlotsFreed && !s.l.Slots.Retake()
		b.Started[i] = s.terms.Runner.Start(s.granted(b, i, slotLost))
		if b.SlotsFreed && !b.Started[i] {
			s.l.Inbox.Send(agenda.SlotsFreed{Slots: 1})
		}
	}
}

// granted is the run that a claim was granted.
func (s sender) granted(b *work.Batch, i int, slotLost bool) work.Grant {
	c, a := b.Claims[i], b.Answers[i]
	first := s.l.Ledger.FirstLease(c.TTL)
	g := work.Grant{
		Job: b.Jobs[i], Lease: c.Lease(a, ledger.Claimer{ID: s.l.ID, Name: s.l.Name}, s.l.Clock.Now().UnixMilli()), Server: b.Server,
		FirstSent: since(b, first, a), Suspended: b.Suspended, FirstTTL: first, WasPending: c.Pending,
	}
	// Only what a schedule asks for is granted ahead: a run that was to be at a later time, and was cancelled, may be repeated before that.
	if t := g.Lease.Trigger; t == jobs.TriggerSchedule.String() || t == jobs.TriggerCatchUp.String() {
		g.StartAt = after(g.Lease.Tick, a.Left-first, b.LastSent, s.l.Clock.Past())
	}
	if slotLost {
		g.HandBackReason = "its grant was heard of when others had all slots"
	}
	//guard:confirm-hands-back P1 a run that too few replicas know of is not begun, if confirmation is asked for
	if a.Unconfirmed != nil {
		g.HandBackReason = "too few replicas have its grant"
	}
	return g
}

// since is the instant from which a granted lease's first span counts: before its first request was sent.
// A pending run keeps its id, so the grant may be one that an earlier batch asked for, whose answer
// never came; then what is left of the lease tells.
func since(b *work.Batch, first time.Duration, a ledger.Answer) time.Time {
	if left := b.LastSent.Add(a.Left - first); left.Before(b.FirstSent) {
		return left
	}
	//guard:granted-from-request P4 the lease counts from before the first request, not from the one that was answered
	if b.FirstSent.Before(b.LastSent) {
		return b.FirstSent
	}
	return b.LastSent
}

// after is until when (ms, by this node's idea of Redis' clock) a run must wait whose tick was so long ahead when it was granted, by Redis'
// own clock, in answer to what was sent then: until its tick, or longer when Redis' clock has stepped back since it was looked at.
func after(tick int64, ahead time.Duration, sent, now time.Time) int64 {
	left := time.UnixMilli(tick).Sub(now)
	if ahead > 0 && left < ahead-time.Since(sent)-time.Millisecond {
		return now.Add(ahead + time.Millisecond).UnixMilli()
	}
	return tick
}
