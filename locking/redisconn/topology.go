package redisconn

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// topologyTimeout bounds LoadTopology.
const topologyTimeout = 5 * time.Second

// LoadTopology makes a new Cluster client load its topology, in five seconds at most. The client
// tries one server after another, so without LoadTopology a first call could time out at a server
// that hangs. For other clients it does nothing. Errors show in the first call.
func LoadTopology(ctx context.Context, client redis.UniversalClient) {
	ctx, cancel := context.WithTimeout(ctx, topologyTimeout)
	defer cancel()
	_ = EachMaster(ctx, client, func(context.Context, redis.Cmdable) error { return nil })
}
