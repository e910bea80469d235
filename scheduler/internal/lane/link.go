package lane

import (
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// link is the connection to one Redis master: whether the master answers, and in which epochs its partitions are.
type link struct {
	addr      string // the master's address; "" for an only server
	clustered bool   // there are other masters
	ledger    *ledger.Ledger
	breaker   *breaker
	epochs    *failover.Epochs
}

// links returns the link to a partition's current master.
type links func(part int) *link

// blocked reports whether nothing is claimed from a partition.
func (k *link) blocked(part int) bool { return k.breaker.blocks() || k.epochs.Blocks(part) }

// steadyFor is how long this node has seen Redis' clock run steadily while the partitions had their current master.
func (k *link) steadyFor(c *Clock) time.Duration {
	steady := c.steadyFor()
	if k.clustered { // otherwise the clock has it
		steady = min(steady, k.epochs.UnchangedFor())
	}
	return steady
}

// reply is the meaning of an answer for the batch that was sent.
type reply uint8

const (
	accepted     reply = iota // the request was carried out
	refused                   // Redis refuses it
	held                      // no epoch is open, or another one has begun: this request did nothing
	migrating                 // the partition's slot moves to another master: this request did nothing
	clockRefused              // this node's clock and Redis' differ
	unreachable               // there is no answer: the request may have been carried out
)

// String is the reply's name.
func (r reply) String() string {
	return [...]string{"accepted", "refused", "held", "migrating", "clockRefused", "unreachable"}[r]
}

// replyOf sorts the error of a request.
func (k *link) replyOf(err error) reply {
	switch {
	case err == nil:
		return accepted
	case errors.Is(err, failover.ErrHolding), errors.Is(err, ledger.ErrServer):
		return held
	case k.clustered && redisconn.OfSlot(err):
		return migrating
	case errors.Is(err, ledger.ErrClock):
		return clockRefused
	case errors.Is(err, locking.ErrUnreachable):
		return unreachable
	}
	return refused
}

// endRuns calls the ledger about runs of one partition that end here, in the epoch in which they are kept. It returns ErrHolding while one
// of them waits until it is restored, and ErrServer when the answer is of an epoch that is over: then the caller repeats the call. In a
// later epoch the runs were reported as going on.
func (k *link) endRuns(part int, runs []string, call func(ctx context.Context, at *ledger.Ledger) ([]*failover.Ending, error)) error {
	epoch, placed := k.epochs.Keeps(part, runs...)
	if !placed {
		return failover.ErrHolding
	}
	ctx, cancel := context.WithTimeout(context.Background(), ledger.CallTimeout)
	defer cancel()
	ends, err := call(ctx, k.ledger.At(epoch))
	if errors.Is(err, ledger.ErrServer) {
		k.epochs.Recheck()
	}
	if err != nil {
		return k.breaker.full(err)
	}
	if !k.epochs.Ended(epoch, part, ends...) {
		return ledger.ErrServer
	}
	return nil
}
