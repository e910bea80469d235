package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// ControlRecord restores the namespace's control record where Redis has lost it.
type ControlRecord struct {
	ledger     *ledger.Ledger
	moves      *Moves
	state      *NodeState
	generation string // the node's
}

// NewControlRecord makes the record of a namespace.
func NewControlRecord(l *ledger.Ledger, m *Moves, s *NodeState, generation string) *ControlRecord {
	return &ControlRecord{l, m, s, generation}
}

// active is the active generation by the last control record read; the node's own before the first.
func (c *ControlRecord) active() string {
	if last := c.state.Control.Load(); last != nil {
		return last.Generation
	}
	return c.generation
}

// RestoreParts writes the lost parts of the control record, and of the gates and incarnations of some
// partitions. It returns ledger.ErrClosed when a move has taken the namespace away, and
// lane.ErrControlMaster when the master of the control record does not answer: only the record shows that no move has closed the namespace.
func (c *ControlRecord) RestoreParts(ctx context.Context, parts []int) error {
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	if c.moves.isClosed() {
		_, err := c.restore(call)
		return err
	}
	control, err := c.ledger.RestoreControl(call, c.active())
	switch {
	case err == nil:
		return c.ledger.RestoreParts(call, control, parts)
	case c.ledger.Clustered() && errors.Is(err, locking.ErrUnreachable):
		return fmt.Errorf("%w: %w", lane.ErrControlMaster, err)
	}
	return err
}

// restore reads the control record. It writes a lost record again, unless a move has closed the
// namespace: then its jobs are elsewhere.
func (c *ControlRecord) restore(ctx context.Context) (ledger.Control, error) {
	if c.moves.isClosed() {
		control, err := c.ledger.Reread(ctx)
		if err = c.missing(err); !errors.Is(err, ledger.ErrNoNamespace) || errors.Is(err, ledger.ErrClosed) {
			return control, err
		}
	}
	return c.ledger.Restore(ctx, c.active())
}

// missing turns the loss of a namespace that a move has closed into ErrClosed.
func (c *ControlRecord) missing(err error) error {
	if errors.Is(err, ledger.ErrNoNamespace) && c.moves.vanished() {
		return fmt.Errorf("%w: %w", ledger.ErrClosed, err)
	}
	return err
}
