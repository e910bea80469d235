package redisconn

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Majority counts how many replicas make, together with their master, a majority of all copies: (r+1)/2 of r replicas,
// and 1 at least. r is what INFO says of the master, on a Cluster of the one that has most: those that are connected now.
// The error wraps locking.ErrUnreachable when no master answers.
func Majority(ctx context.Context, client redis.UniversalClient) (int, error) {
	var mu sync.Mutex
	most := -1 // nobody has answered
	count := func(ctx context.Context, master *redis.Client) error {
		n, err := Replicas(ctx, master)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			most = max(most, n)
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
	if most >= 0 {
		err = nil
	}
	return max(1, (most+1)/2), Explain("count the replicas", err)
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
