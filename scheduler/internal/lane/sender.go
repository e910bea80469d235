package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// sender carries batches of claims to a lane's master and brings back the answers. Several goroutines use it, with one request in flight
// each.
type sender struct {
	home     *link
	links    links
	claims   <-chan *work.Batch // of the lane
	answers  chan<- *work.Batch // to the agenda
	inbox    *agenda.Inbox
	cursors  *failover.Cursors
	clock    *Clock
	health   *Health
	by       claim.Claimer
	skew     time.Duration         // MaxSkew
	resample func(context.Context) // samples Redis' clock
	routes   chan<- struct{}       // holds one signal: look for partitions that have another master
	grants   granter
}

// run carries batches until the lane ends.
func (s *sender) run(t *Terms, ended <-chan struct{}) {
	for {
		select {
		case b := <-s.claims:
			s.carry(t, &flight{Batch: b, skew: s.skew})
		case <-ended:
			s.returnUnsent()
			return
		}
	}
}

// carry gets one batch's answers and starts the granted runs. A batch that has to wait for a
// failover of its partition gets its own goroutine, so that the lane's senders serve other batches.
func (s *sender) carry(t *Terms, f *flight) {
	if !s.send(t.Claiming, f) {
		f.detached = true
		t.Group.Go(func() { s.carry(t, f) })
		return
	}
	if f.Err == nil {
		s.to(f).epochs.Answered(f.Batch)
	}
	s.grants.start(t.Runner, f.Batch)
	s.cursors.Finished(f.Batch)
	s.answers <- f.Batch
}

// to is the link that a batch takes: the lane's, and once detached the current one of its partition.
func (s *sender) to(f *flight) *link {
	if f.detached {
		return s.links(f.Part)
	}
	return s.home
}

// send sends a batch until it is over. When draining has ended, a claim without an answer is given up after a while. False: the batch is
// to go on detached.
func (s *sender) send(draining context.Context, f *flight) (done bool) {
	var doubt inDoubt
	defer doubt.end()
	for {
		k := s.to(f)
		first := f.state == unsent
		switch f.depart(time.Now(), draining.Err() != nil || k.clustered && k.blocked(f.Part)) {
		case over:
			return true
		case asking:
			f.askOnly(s.clock.Now().UnixMilli())
		default:
			if first {
				s.cursors.Asking(f.Batch)
			}
		}
		f.Answers, f.Err = s.claim(k, f.Batch)
		r := k.replyOf(f.Err)
		s.note(k, r, f.Batch)
		if f.arrive(r, time.Now(), draining.Err() != nil) == over {
			return true
		}
		elsewhere := r == held || r == migrating || k.epochs.Blocks(f.Part) // or the partition has another lane
		if k.clustered && f.Err != nil {
			s.freeSlots(f.Batch)
			if elsewhere {
				doubt.end()
			} else {
				doubt.begin(k.breaker)
				if !f.detached { // behind a detached batch wait those of another master
					s.returnUnsent()
				}
			}
		}
		wait.For(context.Background(), wait.Backoff(s.by.ID+f.Claims[0].Run, max(0, f.requests-1)))
		if k.clustered && elsewhere && !f.detached && f.state != unsent {
			return false
		}
	}
}

// claim sends a batch once.
func (s *sender) claim(k *link, b *work.Batch) ([]claim.Answer, error) {
	if err := s.clock.Usable(); err != nil {
		return nil, fmt.Errorf("%w: %w", ledger.ErrClock, err)
	}
	epoch, may := k.epochs.Claims(b.Part)
	if !may {
		return nil, failover.ErrHolding
	}
	ctx, cancel := context.WithTimeout(context.Background(), ledger.CallTimeout)
	defer cancel()
	b.Epoch = epoch
	answers, err := claim.Send(ctx, k.ledger.At(epoch), s.by, s.clock.Now().UnixMilli(), b.Claims)
	return answers, k.breaker.full(err)
}

// note notes what a reply shows of the master, the clock and the partition's master.
func (s *sender) note(k *link, r reply, b *work.Batch) {
	switch r {
	case accepted:
		k.breaker.ok(roleClaim)
		for _, a := range b.Answers {
			if a.Unconfirmed != nil { // too few replicas have the grant
				k.breaker.setConfirmed(a.Unconfirmed)
				return
			}
		}
	case held:
		if errors.Is(b.Err, ledger.ErrServer) {
			k.epochs.Recheck()
		}
	case migrating: // other partitions are not affected
		wait.Signal(s.routes)
	case clockRefused:
		s.health.Fail(roleClaim, b.Err)
		s.resample(context.Background())
	case unreachable:
		k.breaker.Fail(roleClaim, b.Err)
	case refused:
		s.health.Fail(roleClaim, b.Err)
	}
}

// freeSlots releases the slots of a batch in doubt. The runs that it is granted take slots again.
func (s *sender) freeSlots(b *work.Batch) {
	if !b.SlotsFreed {
		b.SlotsFreed = true
		s.inbox.Send(agenda.SlotsFreed{Slots: len(b.Claims)})
	}
}

// returnUnsent returns batches to the agenda that wait behind a batch in doubt and were not sent.
func (s *sender) returnUnsent() {
	for {
		select {
		case next := <-s.claims:
			next.Err = work.ErrNotSent
			s.answers <- next
		default:
			return
		}
	}
}

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
