package lane

import (
	"context"
	"errors"
	"fmt"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
)

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
