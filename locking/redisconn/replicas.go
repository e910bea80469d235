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

// Majority counts how many replicas make, together with their master, a majority of all copies: (r+1)/2 of r replicas,
// and 1 at least. r is what INFO says of the master, on a Cluster of the one that has the fewest, those aside that have none: of those that are
// connected now. The error wraps locking.ErrUnreachable when no master answers.
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

// Replicas is how many replicas are connected to a master, as INFO says; 0 when that says nothing of them.
func Replicas(ctx context.Context, master redis.UniversalClient) (int, error) {
	info, err := master.Info(ctx, "replication").Result()
	for line := range strings.Lines(info) {
		if n, ok := strings.CutPrefix(strings.TrimSpace(line), "connected_slaves:"); ok {
			return strconv.Atoi(n)
		}
	}
	return 0, err
}

// Master is the client of the server where a key lives, for what speaks of one connection, as WAIT does.
func Master(ctx context.Context, client redis.UniversalClient, key string) (*redis.Client, error) {
	switch c := client.(type) {
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, key)
	case *redis.Client:
		return c, nil
	}
	return nil, fmt.Errorf("redis client: to wait for replicas takes a *redis.Client or *redis.ClusterClient, not a %T", client)
}

// Wait is what to wait for after a call.
type Wait struct {
	Replicas int // 0 waits for nothing
	Most     time.Duration
	// Touch is a key that is written after the call, of the same slot, and lives for a second; "" for none. WAIT speaks of what its own
	// connection wrote, and a call that is repeated may have written nothing.
	Touch string
}

// RunAndWait runs a script at the master of its first key and then WAITs over the same connection. It returns the script's answer,
// how many replicas have what was written, and the error of WAIT, after which nobody knows. A *redis.Client is that of the master.
func (s *Script) RunAndWait(ctx context.Context, client redis.UniversalClient, w Wait, keys []string, args ...any) (reply *redis.Cmd, copies int, err error) {
	master, err := Master(ctx, client, keys[0])
	if err != nil {
		reply = redis.NewCmd(ctx)
		reply.SetErr(err)
		return reply, 0, nil
	}
	reply, copies, err = s.runAndWait(ctx, master, w, keys, args)
	if now := movedTo(ctx, client, reply.Err()); now != nil {
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

// movedTo is the client of the server that err, an answer of another one, says a slot has moved to: a *redis.Client follows nothing
// by itself. It is nil when err is another one, and when client knows no such server.
func movedTo(ctx context.Context, client redis.UniversalClient, err error) (to *redis.Client) {
	c, cluster := client.(*redis.ClusterClient)
	addr, moved := redis.IsMovedError(err)
	if !cluster || !moved {
		return nil
	}
	var mu sync.Mutex
	_ = c.ForEachShard(ctx, func(_ context.Context, server *redis.Client) error { // it has c look who is master of what now
		mu.Lock()
		defer mu.Unlock()
		if server.Options().Addr == addr {
			to = server
		}
		return nil
	})
	return to
}

// Queue puts the waiting into a pipeline. When that was sent, the result says how many replicas have what was written.
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
