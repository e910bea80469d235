package lane

import (
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/locking"
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
// stops. While the master's breaker is open the run holds no slot.
func (n *Lanes) HandBack(g work.Grant, valid func() bool) (over func()) {
	n.cursors.back(g)
	slots := 1
	over = func() { n.Inbox.Send(agenda.SlotsFreed{Slots: slots}) }
	back := []ledger.Return{{Job: g.Job.Name, Run: g.Lease.Run, Token: g.Lease.Token}}
	log := n.Log.With("job", g.Job.Name, "tick", time.UnixMilli(g.Lease.Tick).UTC(), "run", g.Lease.Run)
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
		statuses, err := n.Ledger.Unclaim(ctx, back)
		cancel()
		l := n.of(g.Job.Part)
		err = l.breaker.full(err)
		if err == nil {
			log.Info("run handed back before it was started", "reason", g.HandBackReason, "answer", string(statuses[0]), "lease_valid", valid())
			return over
		}
		l.fail("unclaim", err)
		if slots > 0 && l.breaker.open() {
			over()
			slots = 0
		}
		if try >= handBackTries && !(errors.Is(err, locking.ErrUnreachable) && valid() && !n.Stopping()) {
			log.Warn("run could not be handed back; unless Redis took the call, the lease lapses and the run is recorded as abandoned", "error", err)
			return over
		}
		wait.For(context.Background(), wait.Backoff(g.Lease.Run, try))
	}
}
