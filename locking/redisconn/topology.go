package redisconn

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// meetWithin is how long the servers of a Cluster are asked who is there.
const meetWithin = 5 * time.Second

// LoadTopology has a new client of a Cluster find out who is master of what, within five seconds. It asks one server after another until one
// answers, and a call that has to wait for that could be over with the first that hangs. Other clients have nobody to meet. What is
// wrong is found by whoever uses the client.
func LoadTopology(ctx context.Context, client redis.UniversalClient) {
	ctx, cancel := context.WithTimeout(ctx, meetWithin)
	defer cancel()
	_ = EachMaster(ctx, client, func(context.Context, redis.Cmdable) error { return nil })
}
