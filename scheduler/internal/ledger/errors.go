package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
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

// The shortest time that masters have to answer a call to all of them: from nodes, and from tools,
// which may read much over a long way.
const (
	nodeQueueTimeout = time.Second
	toolPatience     = 3 * time.Second
)

// queueTimeout is how long masters have to answer a tool: longer where the client would wait longer
// for a reply, and less where ctx ends soon, so that the other masters' answers come before its
// end.
func (l *Ledger) queueTimeout(ctx context.Context) time.Duration {
	d := toolPatience
	if c, yes := l.client.(*redis.ClusterClient); yes {
		d = max(d, c.Options().ReadTimeout+nodeQueueTimeout)
	}
	if end, yes := ctx.Deadline(); yes {
		d = min(d, time.Until(end)*2/3) //nolint:forbidigo // of a limit of the caller, which is no instant of a schedule
	}
	return d
}

// eachReachable calls f once for each master of some partitions. When only some masters answer
// within that time, the error is an UnreachableError.
func (l *Ledger) eachReachable(ctx context.Context, within time.Duration, op string, parts []int, f func(ctx context.Context, parts []int) error) error {
	if l.Clustered() {
		short, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		ctx = short
	}
	var mu sync.Mutex
	var left []int
	var silent, refused error
	l.eachMaster(ctx, parts, func(parts []int) {
		err := f(ctx, parts)
		if err != nil {
			err = l.explain(ctx, op+l.atMaster(ctx, parts), err)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, locking.ErrUnreachable):
			left, silent = append(left, parts...), cmp.Or(silent, err)
		case err != nil:
			refused = err
		}
	})
	if silent != nil && refused == nil && len(left) < len(parts) {
		return &UnreachableError{left, silent}
	}
	return cmp.Or(refused, silent)
}

// atMaster names the master of a Cluster that has these partitions: " at host:port", "" where there
// is no Cluster or none is known.
func (l *Ledger) atMaster(ctx context.Context, parts []int) string {
	if cluster, yes := l.client.(*redis.ClusterClient); yes && len(parts) > 0 {
		if master, err := cluster.MasterForKey(ctx, l.keys[parts[0]].jobs); err == nil {
			return " at " + redisconn.Addr(master)
		}
	}
	return ""
}

// explain is redisconn.Explain for the calls of tools, after which a Cluster client reads the
// topology again. After calls that only nodes make, the node refreshes it.
func (l *Ledger) explain(ctx context.Context, op string, err error) error {
	return explain(ctx, l.client, l.cfg.Namespace, op, err)
}

// explain is Ledger.explain for calls that are made before there is a ledger.
func explain(ctx context.Context, client redis.UniversalClient, namespace, op string, err error) error {
	err = redisconn.Classify(op, err)
	redisconn.Refresh(ctx, client, err)
	return redisconn.Explain(client, namespace, err)
}
