// Package space opens the ledger and the roster of a namespace for programs that are no node.
package space

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
)

// Conn is a namespace in Redis. It is safe for concurrent use.
type Conn struct {
	Client    redis.UniversalClient
	Namespace string

	clock nodesClock
}

// New makes a connection with a namespace, "" for the default one. It sends nothing.
func New(client redis.UniversalClient, namespace string) *Conn {
	return &Conn{Client: client, Namespace: cmp.Or(namespace, ledger.DefaultNamespace)}
}

// Open opens the ledger.
func (c *Conn) Open(ctx context.Context) (*ledger.Ledger, error) {
	return c.openWith(ctx, ledger.Config{Namespace: c.Namespace})
}

// openWith opens the ledger for a caller that goes by the nodes' idea of Redis' time.
func (c *Conn) openWith(ctx context.Context, cfg ledger.Config) (*ledger.Ledger, error) {
	l, err := ledger.OpenExisting(ctx, c.Client, cfg)
	if err != nil {
		return nil, ledger.AtReplica(ctx, c.Client, c.Namespace, err)
	}
	return l.Believing(c.nodesTime), nil
}

// OpenAppend opens the ledger for calls that add history rows. They drop no rows, because only
// nodes know how many to keep.
func (c *Conn) OpenAppend(ctx context.Context) (*ledger.Ledger, error) {
	return c.openWith(ctx, ledger.Config{Namespace: c.Namespace, Keep: math.MaxInt32, KeepFor: math.MaxInt64})
}

// Roster is the namespace's roster. It is on the master of the control record, which open has
// reached before in most calls.
func (c *Conn) Roster() *roster.Roster {
	return roster.New(c.Client, roster.Config{Namespace: c.Namespace, TTL: cluster.RosterTTL})
}

// Now is the time by which all ticks are due.
func (c *Conn) Now(ctx context.Context) (time.Time, error) {
	l, err := c.Open(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return l.Now(ctx)
}

// Closed reports in a few words that a move has closed the namespace, and where it is instead;
// "" when none has.
func (c *Conn) Closed(ctx context.Context) (string, error) {
	control, err := cluster.ControlAt(ctx, c.Client, c.Namespace)
	if err != nil {
		return "", err
	}
	m, unread := ledger.ParseMove(control.Move)
	switch {
	case unread != nil:
		return "a move has left a note here that cannot be read by this version: the namespace may be elsewhere", nil //nolint:nilerr // the text is the result
	case !m.Closes():
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

// OpenCatalog opens the ledger for a change of the catalog. It returns ledger.ErrClosed when a move has
// closed the namespace.
func (c *Conn) OpenCatalog(ctx context.Context) (*ledger.Ledger, error) {
	closed, err := c.Closed(ctx)
	if err == nil && closed != "" {
		err = fmt.Errorf("%w: %s", ledger.ErrClosed, closed)
	}
	if err != nil {
		return nil, err
	}
	return c.Open(ctx)
}
