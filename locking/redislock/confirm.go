package redislock

import (
	"context"
	"fmt"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// ask runs acquire.lua, and with Config.Confirm waits until that many replicas
// have what it wrote.
func (d *Driver) ask(ctx context.Context, name string, args []any) ([]any, error) {
	keys := lockKeys(d.namespace, name)
	if d.confirm == 0 {
		return acquireScript.Run(ctx, d.client, keys, args...).Slice()
	}
	master, err := redisconn.Master(ctx, d.client, keys[0])
	if err != nil {
		return nil, err
	}
	cmd, copies, unknown := acquireScript.RunAndWait(ctx, master, redisconn.Wait{Replicas: d.confirm, Most: waitFor(ctx)}, keys, args...)
	reply, err := cmd.Slice()
	if err == nil {
		err = unknown
	}
	if err == nil && reply[0] == int64(codeGranted) && copies < d.confirm {
		err = fmt.Errorf("%w: granted, but only %d of the %d replicas of Config.Confirm have it", locking.ErrUnreachable, copies, d.confirm)
	}
	return reply, err
}

// waitFor leaves the replicas half of the time that the call has.
func waitFor(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(time.Until(end)/2, time.Millisecond)
	}
	return 500 * time.Millisecond
}
