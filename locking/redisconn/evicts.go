package redisconn

import (
	"context"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Evicts names the policy by which a server drops keys when its memory is full, as INFO says: "" where it drops none or has no limit. On a
// Cluster it is that of a master which has one. A dropped lock is free, whoever holds it; so ask when a program starts, and tell.
// The error is that of INFO, which a service may forbid.
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
	return policy, Classify("ask what is dropped when memory is full", err)
}

// EachMaster calls f for each master of a Cluster, at the same time, and returns the first error; else once for the client itself. Clients in
// other types are known by their methods.
func EachMaster(ctx context.Context, client redis.UniversalClient, f func(ctx context.Context, c redis.Cmdable) error) error {
	cluster, yes := client.(interface {
		ForEachMaster(ctx context.Context, f func(ctx context.Context, c *redis.Client) error) error
	})
	if !yes {
		return f(ctx, client)
	}
	return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return f(ctx, c) })
}

// evictionPolicy reads it in what INFO says of memory.
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
