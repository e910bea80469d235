package claim

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// claimWait is how long a claim waits for replicas.
const claimWait = 500 * time.Millisecond

// send runs the claim script in a partition. unconfirmed is why the grants are to be handed back,
// nil when enough replicas have them.
func send(ctx context.Context, l *ledger.Ledger, k ledger.Keys, ks, args []string) (reply []any, unconfirmed, err error) {
	if l.Confirm == 0 {
		reply, err = ledger.Evaluate(ctx, l.Client, claimScript, ks, args).Slice()
		return reply, nil, err
	}
	cmd, copies, unknown := claimScript.RunAndWait(ctx, l.Client, confirmation(l, k), ks, ledger.AppendPlaces(nil, args)...)
	reply, err = cmd.Slice()
	return reply, lack(l, copies, unknown), err
}

// confirmation is the wait of a claim in a partition.
func confirmation(l *ledger.Ledger, k ledger.Keys) redisconn.Wait {
	return redisconn.Wait{Replicas: l.Confirm, Most: claimWait, Touch: k.Confirm}
}

// lack is the error of too few copies, or of not knowing how many there are; nil when there are
// enough.
func lack(l *ledger.Ledger, copies int, unknown error) error {
	switch {
	case unknown != nil:
		return redisconn.Classify("wait for replicas", unknown)
	case copies < l.Confirm:
		return fmt.Errorf("%w: only %d of the %d replicas have what was written that are to confirm it", locking.ErrUnreachable, copies, l.Confirm)
	}
	return nil
}

// Confirmed returns nil when enough replicas have the latest writes of a partition's master: a
// claim would be confirmed.
func Confirmed(ctx context.Context, l *ledger.Ledger, part int) error {
	master, err := redisconn.Master(ctx, l.Client, l.Keys[part].Confirm)
	if err != nil {
		return redisconn.Classify("wait for replicas", err)
	}
	pipe := master.Pipeline()
	copies := confirmation(l, l.Keys[part]).Queue(ctx, pipe)
	_, _ = pipe.Exec(ctx) // each command has its own error
	n, unknown := copies()
	return lack(l, n, unknown)
}
