package scheduler

import (
	"context"
	"fmt"

	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Closed says in a few words that a move has closed the namespace here, and where it is instead, so that what is read here is
// not taken for the present; "" when none has. It returns ErrUnknownNamespace when no node has ever run there.
func (i *Inspector) Closed(ctx context.Context) (string, error) {
	c, err := cluster.ControlAt(ctx, i.client, i.namespace)
	if err != nil {
		return "", err
	}
	m, unread := ledger.ParseMove(c.Move)
	switch {
	case unread != nil:
		return "a move has left a note here that cannot be read by this version: the namespace may be elsewhere", nil //nolint:nilerr // it is what is said
	case !cluster.Closes(m):
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
