package peers

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// keyFor is the life of a SET NX key: longer than clock differences and calls, short for Redis'
// memory.
const keyFor = 10 * time.Second

// startSetNX starts the usual hand-written solution: robfig/cron on each node, and one key for each
// job and second, which is left to expire. The second is read from the node's clock when the job is
// called, because robfig/cron passes none. The key is never deleted, which makes this better than a
// lock for the run. The client has go-redis' own settings.
func startSetNX(ctx context.Context, cfg Config) (Stop, error) {
	client := redis.NewClient(&redis.Options{Addr: cfg.Addr})
	owner := strconv.Itoa(cfg.Index)
	return nil, runCron(cfg, func(job int) bool {
		key := jobName(job) + ":" + strconv.FormatInt(time.Now().Unix(), 10)
		return client.SetArgs(ctx, key, owner, redis.SetArgs{Mode: "NX", TTL: keyFor}).Err() == nil
	})
}
