// Package ops reads and operates a namespace from any process: it triggers a job and waits for its
// outcome, lists, pauses, cancels. It needs no node.
//
//	client, err := scheduler.Connect("redis://localhost:6379")
//	admin, err := ops.New(client, "escapement")
//	id, err := admin.Trigger(ctx, "settle-orders", ops.TriggerOptions{})
//	run, err := admin.WaitRun(ctx, id)
//
// Views hold times, durations and outcomes as Go has them. Encode writes their JSON, which
// encoding/json does not: a duration is a number of milliseconds there.
package ops

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/ops/internal/space"
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

// Incomplete splits the error beside a list: partitions whose masters do not answer, records that
// this version cannot read, and what else is wrong.
func Incomplete(err error) (parts, unreadable []error, other error) {
	var others []error
	for _, e := range Causes(err) {
		if errors.As(e, new(*UnreachableError)) {
			parts = append(parts, e)
			continue
		}
		//guard:list-whole P8 one record that cannot be read does not hide the others
		if errors.Is(e, ErrUnknownFormat) {
			unreadable = append(unreadable, e)
			continue
		}
		others = append(others, e)
	}
	return parts, unreadable, errors.Join(others...)
}

// Causes are the errors that were joined into one. A wrapped error stays within its wrapper.
func Causes(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, Causes(e)...)
	}
	return all
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
	return &Client{conn: &conn{Conn: space.New(client, namespace)}}, nil
}

// NewRemote makes a client whose operations are carried out elsewhere.
func NewRemote(r Remote) *Client { return &Client{remote: r} }

// conn is a namespace in Redis, and who acts on it.
type conn struct {
	*space.Conn
	actor *Actor // nil for a program's own client
}

// newID is a uuid v7, so ids sort by creation time.
func newID() string { return uuid.Must(uuid.NewV7()).String() }

// Namespace is the name of the namespace, its time, and whether a move has closed it.
type Namespace struct {
	Name string    `json:"name"`
	Now  time.Time `json:"now" wire:"set"` // Redis' time, by which ticks are due
	// Closed is where a move has taken the namespace; "" when none has closed it here.
	Closed string `json:"closed"`
}

var rowNamespace = row(&Operation[None, Namespace]{
	Info: Info{Method: "GET", Path: "namespace", Role: Viewer, Summary: "Redis' time, and whether a move has closed the namespace"},
	do: func(ctx context.Context, c *conn, _ None) (n Namespace, err error) {
		n.Name = c.Namespace
		if n.Closed, err = c.Closed(ctx); err != nil {
			return Namespace{}, err
		}
		n.Now, err = c.Now(ctx)
		return n, err
	},
})

// Namespace is the name of the namespace, its time, and whether a move has closed it.
func (c *Client) Namespace(ctx context.Context) (Namespace, error) {
	return call(ctx, c, rowNamespace, None{})
}

// Now is the time by which all ticks are due: Redis', or the time of most living nodes while they
// do not believe Redis' clock.
func (c *Client) Now(ctx context.Context) (time.Time, error) {
	if c.remote == nil {
		return c.conn.Now(ctx)
	}
	n, err := c.Namespace(ctx)
	return n.Now, err
}

// Closed reports in a few words that a move has closed the namespace here, and its new place; ""
// when none has. Records that are read here may then be outdated. It returns ErrUnknownNamespace
// when no node has ever run there.
func (c *Client) Closed(ctx context.Context) (string, error) {
	if c.remote == nil {
		return c.conn.Closed(ctx)
	}
	n, err := c.Namespace(ctx)
	return n.Closed, err
}
