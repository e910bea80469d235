package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/escapement/escapement/scheduler/internal/roster"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Errors of a Client that a tool can distinguish.
var (
	// ErrUnknownNamespace is returned when no node has ever run in the namespace.
	ErrUnknownNamespace = ledger.ErrNoNamespace
	// ErrUnknownJob is returned when the namespace has no job of that name.
	ErrUnknownJob = ledger.ErrUnknownJob
	// ErrUnknownRun is returned when neither a run in flight nor the history has that id.
	ErrUnknownRun = ledger.ErrUnknownRun
	// ErrUnknownNode is returned when no node in the roster has that name, and the name is not
	// drained.
	ErrUnknownNode = errors.New("no node of that name")
	// ErrRefused is returned when a request is valid and is not carried out. The error has the reason.
	ErrRefused = ledger.ErrRefused
	// ErrClosed is returned when a move to another Redis has closed the namespace: nothing new
	// begins there.
	ErrClosed = ledger.ErrClosed
	// ErrUnknownFormat is returned for a record that this version cannot read; it is left alone.
	ErrUnknownFormat = ledger.ErrUnknownFormat
)

// UnreachableError names the partitions (Parts) that a list lacks because their masters of a
// Cluster did not answer. It wraps locking.ErrUnreachable and comes together with the rest of the
// list.
type UnreachableError = ledger.UnreachableError

// beside separates an UnreachableError from other errors.
func beside(err error) (left, other error) {
	if errors.As(err, new(*UnreachableError)) {
		return err, nil
	}
	return nil, err
}

// leftOut is the error with a list that lacks so many records in an unknown format; nil for 0.
func leftOut(list string, n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("list %s: %d left out: %w", list, n, ErrUnknownFormat)
}

// Client reads and operates a namespace without being a node: for a command line, an API, a
// console. It works on Redis (New) or over a node's HTTP API (package opshttp), with the same
// methods and errors. It is safe for concurrent use. Every method wraps locking.ErrUnreachable when
// Redis does not answer; the request may then have been carried out all the same, and a Cluster
// client refreshes its topology before the next call. A method that looks for runs returns the
// context's error when the context ends while Redis answers.
type Client struct {
	conn   *conn  // of a client on Redis
	remote Remote // of any other
	actor  *Actor // whose actions the audit gets; nil for a program's own
}

// New makes a client of a namespace ("" is "escapement"). The caller closes the Redis client.
// New sends nothing.
func New(client redis.UniversalClient, namespace string) (*Client, error) {
	if err := redisconn.Check(client); err != nil {
		return nil, err
	}
	if err := (ledger.Config{Namespace: namespace}).Validate(); err != nil {
		return nil, err
	}
	return &Client{conn: &conn{client: client, namespace: cmp.Or(namespace, ledger.DefaultNamespace), clock: &nodesClock{}}}, nil
}

// NewRemote makes a client whose operations are carried out elsewhere.
func NewRemote(r Remote) *Client { return &Client{remote: r} }

// conn is a namespace in Redis. It holds no state.
type conn struct {
	client    redis.UniversalClient
	namespace string
	actor     *Actor // nil for a program's own client
	clock     *nodesClock
}

func (c *conn) open(ctx context.Context) (*ledger.Ledger, error) {
	return c.openWith(ctx, ledger.Config{Namespace: c.namespace})
}

// openWith opens the ledger for a caller that goes by the nodes' idea of Redis' time.
func (c *conn) openWith(ctx context.Context, cfg ledger.Config) (*ledger.Ledger, error) {
	l, err := ledger.OpenExisting(ctx, c.client, cfg)
	if err != nil {
		return nil, ledger.AtReplica(ctx, c.client, c.namespace, err)
	}
	return l.Believing(c.nodesTime), nil
}

// openAppend opens the ledger for calls that add history rows. They drop no rows, because only
// nodes know how many to keep.
func (c *conn) openAppend(ctx context.Context) (*ledger.Ledger, error) {
	return c.openWith(ctx, ledger.Config{Namespace: c.namespace, Keep: math.MaxInt32, KeepFor: math.MaxInt64})
}

// roster is the namespace's roster. It is on the master of the control record, which open has
// reached before in most calls.
func (c *conn) roster() *roster.Roster {
	return roster.New(c.client, roster.Config{Namespace: c.namespace, TTL: cluster.RosterTTL})
}

// redisNow is the time by which all ticks are due.
func redisNow(ctx context.Context, c *conn) (time.Time, error) {
	l, err := c.open(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return l.Now(ctx)
}

// closedWords reports in a few words that a move has closed the namespace, and where it is instead;
// "" when none has.
func closedWords(ctx context.Context, c *conn) (string, error) {
	control, err := cluster.ControlAt(ctx, c.client, c.namespace)
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

// newID is a uuid v7, so ids sort by creation time.
func newID() string { return uuid.Must(uuid.NewV7()).String() }
