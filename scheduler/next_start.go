package scheduler

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/ledger"
)

// before stands before the namespace is opened, which makes it when there is none: a Redis that was emptied in a move, or
// after it, must not be made use of anew. It returns ErrMoved when the node is to go to Next, and an error that says what to
// do when it cannot be known where the jobs are.
func (r *relocation) before(ctx context.Context) error {
	n := r.n
	if n.cfg.Next == nil {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	here, err := controlAt(call, n.client, n.cfg.Namespace)
	cancel()
	if err != nil {
		return err
	}
	call, cancel = context.WithTimeout(ctx, callTimeout)
	defer cancel()
	there, err := controlAt(call, n.cfg.Next, n.cfg.Namespace)
	if here.Partitions == 0 {
		return absent(there, err, redisconn.Addr(n.client), redisconn.Addr(n.cfg.Next))
	}
	if err == nil && ledger.HasMoved(here, there) {
		return ErrMoved
	}
	return nil // what cannot be seen now is seen later
}

// absent says what it means that there is no namespace here, while at Next there is what there says.
func absent(there ledger.Control, err error, here, next string) error {
	if err != nil {
		return fmt.Errorf("there is no namespace at %s, and it cannot be seen whether it has moved to %s: %w; make that Redis reachable, or unset Next (redis.next) to begin anew here", here, next, err)
	}
	m, err := ledger.ParseMove(there.Move)
	switch {
	case err != nil:
		return fmt.Errorf("there is no namespace at %s, and at %s there is one: %w; update this program", here, next, err)
	case m.ID == "":
		return nil // nothing was moved
	case m.Role == ledger.MoveFrom || m.State == ledger.MoveOpen:
		return ErrMoved // it was there, and may have gone on: that Redis says
	case m.State == ledger.MoveBurnt:
		return fmt.Errorf("%w: there is no namespace at %s, where it was to stay when move %s to %s was undone; restore it, or unset Next (redis.next) to begin anew here",
			ledger.ErrRefused, here, m.ID, next)
	}
	return fmt.Errorf("%w: there is no namespace at %s any more, in the middle of move %s from %s to %s; see with `move status` what is there, and bring the move to its end",
		ledger.ErrRefused, here, m.ID, m.Peer, next)
}

// restore reads the control record, and writes it again if Redis lost it, unless a move has closed the namespace: then
// its jobs are elsewhere.
func (r *registrar) restore(ctx context.Context) (ledger.Control, error) {
	if !r.n.moves.isClosed() {
		return r.n.ledger.Restore(ctx, r.active())
	}
	control, err := r.n.ledger.Reread(ctx)
	return control, r.missing(err)
}

// missing makes the loss of a namespace that a move has closed a part of that.
func (r *registrar) missing(err error) error {
	if !errors.Is(err, ledger.ErrNoNamespace) {
		return err
	}
	r.n.moves.vanished()
	return fmt.Errorf("%w: %w", ledger.ErrClosed, err)
}

// closes says whether nothing may be claimed where this is noted.
func closes(m ledger.Move) bool {
	return m.Role == ledger.MoveFrom || m.Role == ledger.MoveTo && m.State != ledger.MoveOpen
}

// closedBy is what scripts are answered by the gates that such a move has closed.
func closedBy(m ledger.Move) error {
	e := &ledger.ClosedError{State: ledger.MoveSealed, Move: m.ID, Where: m.Peer}
	switch {
	case m.State == ledger.MoveBurnt:
		e.State = ledger.MoveBurnt
	case m.Role == ledger.MoveTo:
		e.State = ledger.MoveFilling
	}
	return e
}

// controlAt reads a namespace's control record; the zero Control when there is none.
func controlAt(ctx context.Context, client redis.UniversalClient, namespace string) (ledger.Control, error) {
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

// Closed says in a few words that a move has closed the namespace here, and where it is instead, so that what is read here is
// not taken for the present; "" when none has. It returns ErrUnknownNamespace when no node has ever run there.
func (i *Inspector) Closed(ctx context.Context) (string, error) {
	c, err := controlAt(ctx, i.client, i.namespace)
	if err != nil {
		return "", err
	}
	m, unread := ledger.ParseMove(c.Move)
	switch {
	case unread != nil:
		return "a move has left a note here that cannot be read by this version: the namespace may be elsewhere", nil //nolint:nilerr // it is what is said
	case !closes(m):
		return "", nil
	case m.State == ledger.MoveMoved:
		return fmt.Sprintf("the namespace has moved to %s; this is what was here", m.Peer), nil
	case m.Role == ledger.MoveFrom:
		return fmt.Sprintf("the namespace is sealed by a move to %s: nothing starts here; see `move status`", m.Peer), nil
	case m.State == ledger.MoveBurnt:
		return fmt.Sprintf("a move from %s to here was undone: the namespace is there", m.Peer), nil
	}
	return fmt.Sprintf("the namespace is being moved here from %s, and is not open yet; see `move status`", m.Peer), nil
}
