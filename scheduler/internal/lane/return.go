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

// Noticed says whether a server is, for a partition, the one that this node has noticed last.
func (n *Lane) Noticed(server string, part int) bool { return n.failover.noticed(server, part) }

// handBacks is how often it is tried again at least to hand back a run.
const handBacks = 4

// HandBack returns a run whose function was never called to pending, so that another node takes
// it at once. While Redis does not answer it is repeated for as long as the lease is valid, unless the node leaves, and while that
// is a master of a Cluster, the run lends its slot.
func (n *Lane) HandBack(g work.Grant, valid func() bool) (over func()) {
	lent := false
	over = func() { n.Inbox.Tell(agenda.Returned{Lent: lent}) }
	back := []ledger.Return{{Job: g.Job.Name, Run: g.Lease.Run, Token: g.Lease.Token}}
	log := n.Log.With("job", g.Job.Name, "tick", time.UnixMilli(g.Lease.Tick).UTC(), "run", g.Lease.Run)
	for try := 0; ; try++ {
		ctx, cancel := context.WithTimeout(context.Background(), CallTimeout)
		words, err := n.Ledger.Unclaim(ctx, back)
		cancel()
		err = n.quiet.full(err)
		if err == nil {
			log.Info("run handed back before it was started", "reason", g.Back, "answer", string(words[0]), "lease_valid", valid())
			return over
		}
		n.quiet.fail("unclaim", err, g.Job.Part)
		if !lent && n.quiet.of(g.Job.Part) {
			lent = true
			n.Inbox.Tell(agenda.Lend{Slots: 1})
		}
		if try >= handBacks && !(errors.Is(err, locking.ErrUnreachable) && valid() && !n.Leaving()) {
			log.Warn("run may not be handed back; if Redis did not take it, its lease lapses and it is recorded as abandoned", "error", err)
			return over
		}
		wait.For(context.Background(), wait.Backoff(g.Lease.Run, try))
	}
}
