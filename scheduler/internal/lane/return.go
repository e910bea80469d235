package lane

import (
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Begins reports whether a granted run may begin: whether the epoch in which it was granted is still the
// last one that this node has noticed. The node reports the run in later ones from now on.
func (n *Lanes) Begins(g work.Grant) bool { return n.of(g.Job.Part).epochs.begins(g) }

// handBackTries is how often a hand-back is tried at least.
const handBackTries = 4

// HandBack returns a run to pending whose function was never called, so that another node takes it
// at once. While Redis is unreachable it tries again as long as the lease is valid, unless the node
// stops; in an epoch in which the run is not reported yet, until it is, or until the node ends. While the master's breaker is open, or the
// epoch is not, the run holds no slot.
func (n *Lanes) HandBack(g work.Grant, valid func() bool) (over func()) {
	n.cursors.back(g)
	slots := 1
	over = func() { n.Inbox.Send(agenda.SlotsFreed{Slots: slots}) }
	log := n.Log.With("job", g.Job.Name, "tick", time.UnixMilli(g.Lease.Tick).UTC(), "run", g.Lease.Run)
	alive := n.alive()
	for try := 0; ; try++ {
		l := n.of(g.Job.Part)
		status, err := l.unclaim(g)
		if err == nil {
			log.Info("run handed back before it was started", "reason", g.HandBackReason, "answer", string(status), "lease_valid", valid())
			return over
		}
		held := l.isHeld(err)
		if held {
			try = 0
		} else {
			l.fail("unclaim", err)
		}
		if slots > 0 && (held || l.breaker.open()) {
			over()
			slots = 0
		}
		again := held || try < handBackTries || errors.Is(err, locking.ErrUnreachable) && valid() && !n.Stopping()
		if !again || !wait.For(alive, wait.Backoff(g.Lease.Run, try)) {
			log.Warn("run could not be handed back; unless Redis took the call, the lease lapses and the run is recorded as abandoned", "error", err)
			return over
		}
	}
}

// alive ends when the node's roles do.
func (n *Lanes) alive() context.Context {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.terms.Alive
}

// unclaim hands a run back once.
func (l *Lane) unclaim(g work.Grant) (status ledger.Status, err error) {
	back := []ledger.Return{{Job: g.Job.Name, Run: g.Lease.Run, Token: g.Lease.Token}}
	err = l.endRuns(g.Job.Part, []string{g.Lease.Run}, func(ctx context.Context, at *ledger.Ledger) ([]*ending, error) {
		statuses, err := at.Unclaim(ctx, back)
		if err == nil {
			status = statuses[0]
		}
		return nil, err
	})
	return status, err
}

// endRuns calls the ledger about runs of one partition that end here, in the epoch in which they are kept. It returns errHolding while one of
// them waits until it is restored, and ErrServer when the answer is of an epoch that is over: then the caller repeats the call. In a later
// epoch the runs were reported as going on.
func (l *Lane) endRuns(part int, runs []string, call func(ctx context.Context, at *ledger.Ledger) ([]*ending, error)) error {
	f := l.epochs
	epoch, waits := f.keeps(part)
	for _, run := range runs {
		if _, is := waits[run]; is {
			return errHolding
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
	defer cancel()
	ends, err := call(ctx, l.Ledger.At(epoch))
	if errors.Is(err, ledger.ErrServer) {
		f.recheck()
	}
	if err != nil {
		return l.breaker.full(err)
	}
	if !f.isNoticed(epoch, part, ends...) {
		return ledger.ErrServer
	}
	return nil
}

// isHeld reports whether the ends of runs were refused because the partition's master does not know the runs yet.
func (l *Lane) isHeld(err error) bool {
	return errors.Is(err, errHolding) || errors.Is(err, ledger.ErrServer) || l.clustered && redisconn.OfSlot(err)
}
