package redisconn

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// OutOfMemory reports whether a server has no memory left for writes, by its INFO: the server then
// answers writes with an error that Full recognizes. On a Cluster it reports whether a master has
// none. Without an answer to INFO it is false.
func OutOfMemory(ctx context.Context, client redis.UniversalClient) bool {
	var full atomic.Bool
	_ = EachMaster(ctx, client, func(ctx context.Context, c redis.Cmdable) error {
		info, err := c.Info(ctx, "memory").Result()
		if err == nil && outOfMemory(info) {
			full.Store(true)
		}
		return err
	})
	return full.Load()
}

// outOfMemory reads the memory figures of INFO.
func outOfMemory(info string) bool {
	bytes := map[string]int64{}
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		bytes[name], _ = strconv.ParseInt(value, 10, 64) // 0 for a text
	}
	return bytes["maxmemory"] > 0 && bytes["used_memory"]-bytes["mem_not_counted_for_evict"] > bytes["maxmemory"]
}
