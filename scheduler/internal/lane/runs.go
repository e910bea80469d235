package lane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/agenda"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// Begins reports whether a granted run may begin: whether the epoch of its grant is still the last
// one noticed by this node. The node reports the run in later epochs from now on.
func (n *Lanes) Begins(g work.Grant) bool { return n.link(g.Job.Part).epochs.Begins(g) }

// handBackTries is how often a hand-back is tried at least.
const handBackTries = 4

// HandBack returns a run to pending whose function was never called, so that another node takes it
// at once. While Redis is unreachable it tries again as long as the lease is valid, unless the node
// stops; in an epoch in which the run is not reported yet, until it is, or until the node ends. While the master's breaker is open, or the
// epoch is not, the run holds no slot.
func (n *Lanes) HandBack(g work.Grant, valid func() bool) (over func()) {
	n.reporter.Cursors.Undo(g)
	slots := 1
	over = func() { n.Inbox.Send(agenda.SlotsFreed{Slots: slots}) }
	log := n.Log.With("job", g.Job.Name, "tick", time.UnixMilli(g.Lease.Tick).UTC(), "run", g.Lease.ID)
	alive := n.alive()
	for try := 0; ; try++ {
		k := n.link(g.Job.Part)
		status, err := k.unclaim(g)
		if err == nil {
			log.Info("run handed back before it was started", "reason", g.HandBackReason, "answer", string(status), "lease_valid", valid())
			return over
		}
		r := k.replyOf(err)
		waits := r == held || r == migrating
		if waits {
			try = 0
		} else {
			k.breaker.Fail("unclaim", err)
		}
		if slots > 0 && (waits || k.breaker.open()) {
			over()
			slots = 0
		}
		again := waits || try < handBackTries || errors.Is(err, locking.ErrUnreachable) && valid() && !n.Stopping()
		if !again || !wait.For(alive, wait.Backoff(g.Lease.ID, try)) {
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
func (k *link) unclaim(g work.Grant) (status ledger.Status, err error) {
	back := []settle.Return{{Job: g.Job.Name, Run: g.Lease.ID, Token: g.Lease.Token}}
	err = k.endRuns(g.Job.Part, []string{g.Lease.ID}, func(ctx context.Context, at *ledger.Ledger) ([]*failover.Ending, error) {
		statuses, err := settle.Unclaim(ctx, at, back)
		if err == nil {
			status = statuses[0]
		}
		return nil, err
	})
	return status, err
}

// Settle records a run's end. then gets the ledger's answer, or errStopped.
func (n *Lanes) Settle(g work.Grant, r settle.Report, then work.SettleListener) {
	for part := g.Job.Part; ; {
		l := n.of(part)
		freed := l.breaker.open()
		switch taken := l.settler.add(part, settling{&failover.Ending{Grant: g, Report: r}, then, freed}); {
		case taken && freed:
			n.Inbox.Send(agenda.SlotsFreed{Slots: 1})
			return
		case taken:
			return
		case n.of(part) == l: // no other lane has the partition: the node has stopped
			n.Inbox.Send(agenda.Settled{Reports: []settle.Report{r}, Slots: 1})
			then.Settled(r, "", errStopped)
			return
		}
	}
}

// Tail keeps the latest output of runs of a partition. It returns ErrBreaker when the master is
// known to be unreachable. A missing answer does not open the breaker: the call is long, and
// nothing depends on it.
func (n *Lanes) Tail(ctx context.Context, part int, tails []settle.Tail) error {
	if n.link(part).breaker.open() {
		return ErrBreaker
	}
	_, err := settle.KeepTails(ctx, n.Ledger, part, tails)
	return err
}

// Save keeps the checkpoint of a run at the master to which the run was asserted. Before that, and when the master is known to be
// unreachable, it returns locking.ErrUnreachable.
func (n *Lanes) Save(ctx context.Context, run ledger.Run, before string, data []byte) error {
	part := n.Ledger.Partition(run.Job)
	to := n.link(part)
	server, placed := to.epochs.Keeps(part, run.ID)
	switch {
	case to.breaker.open():
		return fmt.Errorf("save a checkpoint: %w: %w", locking.ErrUnreachable, ErrBreaker)
	case !placed:
		return fmt.Errorf("save a checkpoint: %w: %w", locking.ErrUnreachable, failover.ErrHolding)
	}
	err := settle.Save(ctx, n.Ledger, server, run, before, data)
	if errors.Is(err, ledger.ErrServer) {
		to.epochs.Recheck()
		err = fmt.Errorf("%w: %w", locking.ErrUnreachable, err)
	}
	return err
}

// Saved reads the newest checkpoint of the attempts before a run, and whose it is; "" and nil for none.
func (n *Lanes) Saved(ctx context.Context, run ledger.Run) (by string, data []byte, err error) {
	return settle.Saved(ctx, n.Ledger, run)
}

// Renew renews leases for the lanes' keepers, at the servers to which their runs were asserted.
// Leases of runs that are not restored yet have no answer.
func (n *Lanes) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	answers, places := make([]locking.RenewAnswer, len(batch)), make([]int, 0, len(batch))
	asked, servers := make([]locking.Renewal, 0, len(batch)), make(map[int]string)
	for i, b := range batch {
		part := n.Ledger.Partition(b.Name)
		if server, placed := n.link(part).epochs.Keeps(part, b.Owner); placed {
			asked, places, servers[part] = append(asked, b), append(places, i), server
		}
	}
	if len(asked) == 0 {
		return answers, nil
	}
	got, err := settle.RenewAt(ctx, n.Ledger, asked, func(part int) string { return servers[part] }, n.Runs.Progress)
	if errors.Is(err, ledger.ErrServer) {
		for part := range servers {
			n.link(part).epochs.Recheck()
		}
	}
	for i, a := range got {
		answers[places[i]] = a
	}
	return answers, err
}
