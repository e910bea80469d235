package redislock

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

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
	reply, copies, err := askAndWait(ctx, master, acquireScript.Queue, d.confirm, keys, args)
	if redisconn.UnknownScript(err) {
		reply, copies, err = askAndWait(ctx, master, acquireScript.QueueSource, d.confirm, keys, args)
	}
	if err == nil && reply[0] == int64(codeGranted) && copies < int64(d.confirm) {
		err = fmt.Errorf("%w: granted, but only %d of the %d replicas of Config.Confirm have it", locking.ErrUnreachable, copies, d.confirm)
	}
	return reply, err
}

type queueScript func(context.Context, redis.Pipeliner, []string, ...any) *redis.Cmd

// askAndWait sends the script and WAIT over one connection, because WAIT speaks
// of what its own connection wrote.
func askAndWait(ctx context.Context, master *redis.Client, queue queueScript, confirm int, keys []string, args []any) ([]any, int64, error) {
	pipe := master.Pipeline()
	cmd := queue(ctx, pipe, keys, args...)
	wait := pipe.Do(ctx, "wait", confirm, waitFor(ctx).Milliseconds())
	_, _ = pipe.Exec(ctx) // each command has its own error, read below
	reply, err := cmd.Slice()
	if err != nil {
		return nil, 0, err
	}
	copies, err := wait.Int64()
	return reply, copies, err
}

// waitFor leaves the replicas half of the time that the call has.
func waitFor(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return max(time.Until(end)/2, time.Millisecond)
	}
	return 500 * time.Millisecond
}
