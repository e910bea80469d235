package redisconn

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// Majority returns how many replicas make, together with their master, a majority of all copies: (r+1)/2 of r
// replicas, and at least 1. r counts the replicas that are connected now; on a Cluster it is the smallest number
// of any master, except 0. The error wraps locking.ErrUnreachable when no master answers.
func Majority(ctx context.Context, client redis.UniversalClient) (int, error) {
	var mu sync.Mutex
	fewest, answered := 0, false
	count := func(ctx context.Context, master *redis.Client) error {
		n, err := Replicas(ctx, master)
		mu.Lock()
		defer mu.Unlock()
		if answered = answered || err == nil; n > 0 && (fewest == 0 || n < fewest) {
			fewest = n
		}
		return err
	}
	var err error
	switch c := client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, count)
	case *redis.Client:
		err = count(ctx, c)
	default:
		err = fmt.Errorf("redis client: the replicas of a %T cannot be counted; use a *redis.Client or *redis.ClusterClient", client)
	}
	if answered {
		err = nil
	}
	return max(1, (fewest+1)/2), Classify("count the replicas", err)
}

// Replicas returns how many replicas are connected to a master, from INFO; 0 when INFO has no
// number.
func Replicas(ctx context.Context, master redis.UniversalClient) (int, error) {
	info, err := master.Info(ctx, "replication").Result()
	for line := range strings.Lines(info) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "connected_slaves:"); ok {
			return strconv.Atoi(n)
		}
	}
	return 0, err
}

// Master returns the client of the master that has a key, for commands that refer to a connection, as WAIT does.
func Master(ctx context.Context, client redis.UniversalClient, key string) (*redis.Client, error) {
	switch c := client.(type) {
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, key)
	case *redis.Client:
		return c, nil
	}
	return nil, fmt.Errorf("redis client: to wait for replicas takes a *redis.Client or *redis.ClusterClient, not a %T", client)
}

// Wait is how many replicas must have stored a call's writes.
type Wait struct {
	Replicas int           // 0: none, and no WAIT
	Most     time.Duration // the longest wait
	// Touch is a key of the same slot that is written after the call and lives for a second; "" for none. WAIT
	// refers to the writes of its own connection, and a repeated call may write nothing.
	Touch string
}

// RunAndWait runs a script at the master of its first key, and then WAIT over the same connection. It returns the
// script's reply, the number of replicas that have stored its writes, and the error of WAIT, after which that
// number is unknown.
func (s *Script) RunAndWait(ctx context.Context, client redis.UniversalClient, w Wait, keys []string, args ...any) (reply *redis.Cmd, copies int, err error) {
	master, err := Master(ctx, client, keys[0])
	if err != nil {
		reply = redis.NewCmd(ctx)
		reply.SetErr(err)
		return reply, 0, nil
	}
	reply, copies, err = s.runAndWait(ctx, master, w, keys, args)
	if now := redirectTarget(ctx, client, reply.Err()); now != nil {
		return s.runAndWait(ctx, now, w, keys, args)
	}
	return reply, copies, err
}

func (s *Script) runAndWait(ctx context.Context, master *redis.Client, w Wait, keys []string, args []any) (reply *redis.Cmd, copies int, err error) {
	run := func(queue func(context.Context, redis.Pipeliner, []string, ...any) *redis.Cmd) {
		pipe := master.Pipeline()
		reply = queue(ctx, pipe, keys, args...)
		waited := w.Queue(ctx, pipe)
		_, _ = pipe.Exec(ctx) // each command has its own error
		copies, err = waited()
	}
	if run(s.Queue); UnknownScript(reply.Err()) {
		run(s.QueueSource)
	}
	return reply, copies, err
}

// redirectTarget returns the client of the server that a MOVED reply names, because a *redis.Client follows no
// redirect by itself. It is nil for other errors, and for an unknown server.
func redirectTarget(ctx context.Context, client redis.UniversalClient, err error) (to *redis.Client) {
	c, cluster := client.(*redis.ClusterClient)
	addr, moved := redis.IsMovedError(err)
	if !cluster || !moved {
		return nil
	}
	var mu sync.Mutex
	_ = c.ForEachShard(ctx, func(_ context.Context, server *redis.Client) error { // this makes c reload its topology
		mu.Lock()
		defer mu.Unlock()
		if server.Options().Addr == addr {
			to = server
		}
		return nil
	})
	return to
}

// Queue adds WAIT to a pipeline. Call the result after the pipeline was sent: it returns how many replicas have
// stored the writes.
func (w Wait) Queue(ctx context.Context, pipe redis.Pipeliner) func() (copies int, err error) {
	if w.Replicas == 0 {
		return func() (int, error) { return 0, nil }
	}
	touched := redis.NewStatusCmd(ctx)
	if w.Touch != "" {
		touched = pipe.Set(ctx, w.Touch, "", time.Second)
	}
	waited := pipe.Do(ctx, "wait", w.Replicas, w.Most.Milliseconds())
	return func() (int, error) {
		if err := touched.Err(); err != nil {
			return 0, err
		}
		return waited.Int()
	}
}
