package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// ErrUnconfirmed is returned when Redis granted a lock, but fewer replicas than Config.Confirm have stored
// the grant in time. The error also wraps locking.ErrUnreachable, and the lock is released.
// Start replicas, or lower Config.Confirm.
var ErrUnconfirmed = errors.New("too few replicas confirm it")

// runAcquire runs the script that acquires, and with Config.Confirm waits until that many replicas have its writes.
func (d *Driver) runAcquire(ctx context.Context, r locking.Request, args []any) ([]any, error) {
	keys := lockKeys(d.namespace, r.Name)
	if d.confirm == 0 {
		return acquired(d.scripts.acquire.Run(ctx, d.client, keys, args...))
	}
	cmd, copies, unknown := d.scripts.acquire.RunAndWait(ctx, d.client, redisconn.Wait{Replicas: d.confirm, Most: waitFor(ctx)}, keys, args...)
	reply, err := acquired(cmd)
	if err == nil && unknown != nil {
		err = d.releaseGrant(ctx, keys, r.Owner, unknown)
	}
	if err == nil && reply[0] == int64(codeGranted) && copies < d.confirm {
		err = fmt.Errorf("%w: %w: only %d of the %d replicas that have to, have stored the grant", locking.ErrUnreachable, ErrUnconfirmed, copies, d.confirm)
	}
	return reply, err
}

// releaseGrant releases a lock whose WAIT was refused, as without the permission for it: no later
// call would release it. It returns the refusal, or an error that wraps ErrUnreachable when the
// lock may still be held.
func (d *Driver) releaseGrant(ctx context.Context, keys []string, owner string, refused error) error {
	if ctx.Err() != nil || errors.Is(redisconn.Classify("wait", refused), locking.ErrUnreachable) {
		return refused // the caller repeats the request, or releases
	}
	if err := d.scripts.release.Run(ctx, d.client, keys, owner).Err(); err != nil {
		return fmt.Errorf("%w: %w; the lock could not be released: %w", locking.ErrUnreachable, refused, err)
	}
	return refused
}

// waitFor returns half of the call's remaining time: how long to wait for replicas.
func waitFor(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(time.Until(end)/2, time.Millisecond)
	}
	return 500 * time.Millisecond
}
