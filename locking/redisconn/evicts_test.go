package redisconn_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

func TestEvicts(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client(t)
	for _, tt := range []struct{ limit, policy, want string }{
		{"0", "allkeys-lru", ""}, {"1gb", "allkeys-lru", "allkeys-lru"}, {"1gb", "volatile-ttl", "volatile-ttl"}, {"1gb", "noeviction", ""},
	} {
		for name, value := range map[string]string{"maxmemory": tt.limit, "maxmemory-policy": tt.policy} {
			if err := c.ConfigSet(t.Context(), name, value).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := redisconn.Evicts(t.Context(), c); got != tt.want || err != nil {
			t.Errorf("maxmemory %s, %s: %q, %v; want %q", tt.limit, tt.policy, got, err, tt.want)
		}
	}
	gone := redis.NewClient(redistest.ClientOptions("127.0.0.1:1"))
	defer gone.Close()
	if got, err := redisconn.Evicts(t.Context(), gone); got != "" || err == nil {
		t.Errorf("of no server: %q, %v", got, err)
	}
}
