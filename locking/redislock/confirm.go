package redislock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// ErrUnconfirmed is wrapped, beside locking.ErrUnreachable, when Redis has granted a lock and fewer replicas have that than
// Config.Confirm wants. The lock is given back.
var ErrUnconfirmed = errors.New("too few replicas confirm it")

// ask runs acquire.lua, and with Config.Confirm waits until that many replicas
// have what it wrote.
func (d *Driver) ask(ctx context.Context, name string, args []any) ([]any, error) {
	keys := lockKeys(d.namespace, name)
	if d.confirm == 0 {
		return acquired(acquireScript.Run(ctx, d.client, keys, args...))
	}
	cmd, copies, unknown := acquireScript.RunAndWait(ctx, d.client, redisconn.Wait{Replicas: d.confirm, Most: waitFor(ctx)}, keys, args...)
	reply, err := acquired(cmd)
	if err == nil && unknown != nil {
		err = d.takeBack(ctx, keys, args[0], unknown)
	}
	if err == nil && reply[0] == int64(codeGranted) && copies < d.confirm {
		err = fmt.Errorf("%w: %w: granted, but only %d of the %d replicas that have to, have it", locking.ErrUnreachable, ErrUnconfirmed, copies, d.confirm)
	}
	return reply, err
}

// takeBack gives back what may have been granted when its WAIT was answered with an error, for want of a right or where a service
// forbids it: a refusal, after which nobody does. It returns that error, or one that leaves the outcome open.
func (d *Driver) takeBack(ctx context.Context, keys []string, owner any, refused error) error {
	if ctx.Err() != nil || errors.Is(redisconn.Classify("wait", refused), locking.ErrUnreachable) {
		return refused // asked again, or given back
	}
	if err := releaseScript.Run(ctx, d.client, keys, owner).Err(); err != nil {
		return fmt.Errorf("%w: %w: and it could not be given back: %w", locking.ErrUnreachable, refused, err)
	}
	return refused
}

// waitFor leaves the replicas half of the time that the call has.
func waitFor(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(time.Until(end)/2, time.Millisecond)
	}
	return 500 * time.Millisecond
}
