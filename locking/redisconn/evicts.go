package redisconn

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// Evicts returns the policy by which a server evicts keys when its memory is full, from INFO: ""
// when the server evicts none or has no limit. On a Cluster it is the policy of a master that has
// one. An evicted lock is free, so call Evicts at a program's start, and warn. The error is INFO's,
// which a service may forbid.
func Evicts(ctx context.Context, client redis.UniversalClient) (policy string, err error) {
	var mu sync.Mutex
	ask := func(ctx context.Context, c redis.Cmdable) error {
		info, err := c.Info(ctx, "memory").Result()
		mu.Lock()
		defer mu.Unlock()
		if p := evictionPolicy(info); p != "" {
			policy = p
		}
		return err
	}
	err = EachMaster(ctx, client, ask)
	return policy, Classify("read maxmemory-policy", err)
}

// EachMaster calls f for each master of a Cluster, concurrently, and returns the first error. For other clients it
// calls f once. A Cluster client inside of another type is recognized by its method ForEachMaster.
func EachMaster(ctx context.Context, client redis.UniversalClient, f func(ctx context.Context, c redis.Cmdable) error) error {
	cluster, yes := client.(interface {
		ForEachMaster(ctx context.Context, f func(ctx context.Context, c *redis.Client) error) error
	})
	if !yes {
		return f(ctx, client)
	}
	return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return f(ctx, c) })
}

// IsClosed reports whether the program has closed client. A Cluster client closes its clients of
// unused servers by itself, so a single redis.ErrClosed does not prove it.
func IsClosed(ctx context.Context, client redis.UniversalClient) bool {
	var open atomic.Bool
	err := EachMaster(ctx, client, func(ctx context.Context, c redis.Cmdable) error {
		err := c.Ping(ctx).Err()
		if !errors.Is(err, redis.ErrClosed) {
			open.Store(true)
		}
		return err
	})
	return !open.Load() && errors.Is(err, redis.ErrClosed)
}

// evictionPolicy returns the policy in INFO's section "memory".
func evictionPolicy(info string) (policy string) {
	limited := false
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch name {
		case "maxmemory":
			limited = value != "0"
		case "maxmemory_policy":
			policy = value
		}
	}
	if !limited || policy == "noeviction" {
		return ""
	}
	return policy
}
