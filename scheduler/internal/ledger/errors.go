package ledger

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrClock is returned when a script refused to act because Redis' clock and the caller's idea of
// it differ by more than MaxSkew. Sample the clock and repeat.
var ErrClock = errors.New("Redis' clock is not what this node believes")

// ErrServer is returned when a script refused to act because Redis was restarted, or another server
// has taken its place, since the caller read its identity (see Identity). Read the identity again,
// report the runs that may be lost with Reassert, and repeat.
var ErrServer = errors.New("Redis is another server than this node knows, or was restarted")

// ErrNoNamespace is returned when a tool opens a namespace in which no node has ever run.
var ErrNoNamespace = errors.New("no such namespace")

// ErrUnknownJob is returned when no entry of that name exists in the namespace.
var ErrUnknownJob = errors.New("unknown job")

// ErrUnknownRun is returned when no lease, pending record or history row has that run id.
var ErrUnknownRun = errors.New("unknown run")

// ErrRefused is returned when the ledger understood a request and will not carry it out; the text
// names what to do instead.
var ErrRefused = errors.New("refused")

// ErrClosed is returned when a move to another Redis has closed the namespace: it grants, takes in
// and changes nothing. Runs in flight may still be renewed, settled and reaped. ErrClosed is an
// ErrRefused: errors.Is finds both.
var ErrClosed error = closedNamespace{}

type closedNamespace struct{}

func (closedNamespace) Error() string { return "the namespace is closed" }

// Is makes every error that wraps ErrClosed match ErrRefused.
func (closedNamespace) Is(target error) bool { return target == ErrRefused }

// ErrUnknownFormat is returned for a record that this version cannot read: written by a newer node,
// or not by a node at all. It is left alone.
var ErrUnknownFormat = errors.New("a record this version does not understand")

// ClockError is ErrClock with the facts.
type ClockError struct {
	Redis    time.Time // Redis' clock when it answered
	Believed time.Time // the caller's idea of the time
}

// Error prints both clocks.
func (e *ClockError) Error() string {
	return fmt.Sprintf("%v: Redis says %s, the node believed %s", ErrClock,
		e.Redis.UTC().Format(time.RFC3339Nano), e.Believed.UTC().Format(time.RFC3339Nano))
}

// Is makes errors.Is(err, ErrClock) true.
func (e *ClockError) Is(target error) bool { return target == ErrClock }

// UnreachableError names the partitions that a call left out, because their masters of a Cluster
// did not answer. It wraps locking.ErrUnreachable.
type UnreachableError struct {
	Parts []int
	Err   error // the first
}

// Error is how many there are, and the first error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("%d partitions left out: %v", len(e.Parts), e.Err)
}

// Unwrap makes errors.Is find the errors that the first error wraps.
func (e *UnreachableError) Unwrap() error { return e.Err }

// ClosedError is ErrClosed with the facts. It is ErrRefused as well.
type ClosedError struct {
	// State is sealed, filling or burnt; or foreign, when this version cannot read why.
	State string
	// Move is the id of the move that has closed the namespace.
	Move string
	// Where is the address of the Redis that the move goes to (sealed) or comes from (filling).
	Where string
}

// ClosedBy reads the answer of a closed partition.
func ClosedBy(answer string) *ClosedError {
	f := strings.SplitN(answer, "|", 3)
	f = append(f, "", "", "")
	return &ClosedError{State: f[0], Move: f[1], Where: f[2]}
}

// Error returns the state of the gate, and the next step for the caller.
func (e *ClosedError) Error() string {
	switch e.State {
	case gateSealed:
		return fmt.Sprintf("%v: its jobs move to %s, or have moved; use that Redis, or look with `move status`", ErrClosed, e.Where)
	case GateFilling:
		return fmt.Sprintf("%v: its jobs are being moved here from %s; wait for `move open`, or look with `move status`", ErrClosed, e.Where)
	case gateBurnt:
		return fmt.Sprintf("%v: a move from %s to here was undone; use that Redis", ErrClosed, e.Where)
	}
	return fmt.Sprintf("%v: %v; update this program", ErrClosed, ErrUnknownFormat)
}

// Unwrap makes errors.Is find ErrClosed, and with it ErrRefused.
func (e *ClosedError) Unwrap() error { return ErrClosed }

// IsReply reports whether Redis answered with an error.
func IsReply(err error) bool { return errors.As(err, new(redis.Error)) }
