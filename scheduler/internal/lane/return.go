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

// Begins says whether a run that was granted may begin: its server is the one that this node has noticed last, which is told of it from now on.
func (n *Lanes) Begins(g work.Grant) bool { return n.of(g.Job.Part).failover.begins(g) }

// handBacks is how often it is tried again at least to hand back a run.
const handBacks = 4

// HandBack returns a run whose function was never called to pending, so that another node takes
// it at once. While Redis does not answer it is repeated for as long as the lease is valid, unless the node leaves. While the breaker of a
// master is open the run holds no slot.
func (n *Lanes) HandBack(g work.Grant, valid func() bool) (over func()) {
	n.cursors.back(g)
	slots := 1
	over = func() { n.Inbox.Send(agenda.SlotsFreed{Slots: slots}) }
	back := []ledger.Return{{Job: g.Job.Name, Run: g.Lease.Run, Token: g.Lease.Token}}
	log := n.Log.With("job", g.Job.Name, "tick", time.UnixMilli(g.Lease.Tick).UTC(), "run", g.Lease.Run)
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
		words, err := n.Ledger.Unclaim(ctx, back)
		cancel()
		l := n.of(g.Job.Part)
		err = l.breaker.full(err)
		if err == nil {
			log.Info("run handed back before it was started", "reason", g.HandBackReason, "answer", string(words[0]), "lease_valid", valid())
			return over
		}
		l.fail("unclaim", err)
		if slots > 0 && l.breaker.open() {
			over()
			slots = 0
		}
		if try >= handBacks && !(errors.Is(err, locking.ErrUnreachable) && valid() && !n.Leaving()) {
			log.Warn("run may not be handed back; if Redis did not take it, its lease lapses and it is recorded as abandoned", "error", err)
			return over
		}
		wait.For(context.Background(), wait.Backoff(g.Lease.Run, try))
	}
}
