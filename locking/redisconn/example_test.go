package redisconn_test

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

func ExampleCheck() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
	defer client.Close()
	fmt.Println(redisconn.Check(client))
	// Output:
	// redis client 127.0.0.1:6379: MaxRetries is 3: a repeated command hides a lost reply; set redis.Options.MaxRetries to -1
}
