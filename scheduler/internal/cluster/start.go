package cluster

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// CheckStart runs before the namespace is opened, which creates a missing one: a Redis that was
// emptied during or after a move must not be used again. It returns ErrMoved when the node is to go
// to Next, and an error with advice when it cannot be known where the jobs are.
func (m *Moves) CheckStart(ctx context.Context) error {
	if m.Next == nil {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	here, err := ControlAt(call, m.Client, m.Namespace)
	cancel()
	if err != nil {
		return err
	}
	call, cancel = context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	there, err := ControlAt(call, m.Next, m.Namespace)
	if here.Partitions == 0 {
		return absent(there, err, redisconn.Addr(m.Client), redisconn.Addr(m.Next))
	}
	if err == nil && ledger.HasMoved(here, there) {
		return ErrMoved
	}
	return nil // a problem is found later
}

// absent returns the error for a namespace that is missing here, by the control record at Next.
func absent(there ledger.Control, err error, here, next string) error {
	if err != nil {
		return fmt.Errorf("there is no namespace at %s, and it cannot be seen whether it has moved to %s: %w; make that Redis reachable, or unset Next (redis.next) to create a new one here", here, next, err)
	}
	move, err := ledger.ParseMove(there.Move)
	switch {
	case err != nil:
		return fmt.Errorf("there is no namespace at %s, and at %s there is one: %w; update this program", here, next, err)
	case move.ID == "":
		return nil // nothing was moved
	case move.Role == ledger.MoveFrom || move.State == ledger.MoveOpen:
		return ErrMoved // it was there, and may have moved on: only that Redis has the record
	case move.State == ledger.MoveBurnt:
		return fmt.Errorf("%w: there is no namespace at %s, where it was to stay when move %s to %s was undone; restore it, or unset Next (redis.next) to create a new one here",
			ledger.ErrRefused, here, move.ID, next)
	}
	return fmt.Errorf("%w: there is no namespace at %s any more, during move %s from %s to %s; check with `move status`, and complete the move",
		ledger.ErrRefused, here, move.ID, move.Peer, next)
}

// closedBy is the error that the gates of such a move answer.
func closedBy(move ledger.Move) error {
	e := &ledger.ClosedError{State: ledger.MoveSealed, Move: move.ID, Where: move.Peer}
	switch {
	case move.State == ledger.MoveBurnt:
		e.State = ledger.MoveBurnt
	case move.Role == ledger.MoveTo:
		e.State = ledger.MoveFilling
	}
	return e
}

// ControlAt reads a namespace's control record; the zero Control when there is none.
func ControlAt(ctx context.Context, client redis.UniversalClient, namespace string) (ledger.Control, error) {
	l, err := ledger.OpenExisting(ctx, client, ledger.Config{Namespace: namespace})
	if err == nil {
		var c ledger.Control
		if c, err = l.Control(ctx); err == nil {
			return c, nil
		}
	}
	if errors.Is(err, ledger.ErrNoNamespace) {
		err = nil
	}
	return ledger.Control{}, err
}
