package redisconn_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

func TestCheck(t *testing.T) {
	retrying := redistest.ClientOptions("user:secret@10.0.0.1:7000")
	retrying.MaxRetries = 0 // go-redis's default, three
	noDeadlines, unlimited := redistest.ClientOptions("10.0.0.1:7000"), redistest.ClientOptions("10.0.0.1:7000")
	noDeadlines.ReadTimeout, unlimited.ReadTimeout = -2, -1
	pipelined := redis.NewClient(redistest.ClientOptions("10.0.0.1:7000"))
	defer pipelined.Close()
	pipeliner, err := pipelined.AutoPipeline()
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		client redis.UniversalClient
		want   []string // in the error; none: accepted
	}{
		"as wanted":    {client: redis.NewClient(redistest.ClientOptions("10.0.0.1:7000"))},
		"default":      {redis.NewClient(&redis.Options{Addr: "10.0.0.1:7000"}), []string{"10.0.0.1:7000", "MaxRetries is 3", "redis.Options.MaxRetries to -1", "ContextTimeoutEnabled to true"}},
		"retries":      {redis.NewClient(retrying), []string{"10.0.0.1:7000", "MaxRetries"}},
		"no context":   {redis.NewClient(&redis.Options{MaxRetries: -1}), []string{"ContextTimeoutEnabled"}},
		"no deadlines": {redis.NewClient(noDeadlines), []string{"10.0.0.1:7000", "redis.Options.ReadTimeout"}},
		"no limits":    {client: redis.NewClient(unlimited)},
		"cluster, no deadlines": {redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"10.0.0.1:7000"}, ContextTimeoutEnabled: true, WriteTimeout: -2}),
			[]string{"redis.ClusterOptions.ReadTimeout"}},
		"cluster":          {client: redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"10.0.0.1:7000"}, ContextTimeoutEnabled: true})},
		"cluster, retries": {redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"10.0.0.1:7000"}, MaxRetries: 2}), []string{"redis.ClusterOptions.MaxRetries to -1", "redis.ClusterOptions.ContextTimeoutEnabled"}},
		"sentinel":         {client: redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"10.0.0.1:26379"}, MaxRetries: -1, ContextTimeoutEnabled: true})},
		"sentinel, default": {redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"10.0.0.1:26379"}}),
			[]string{"the master that Sentinel names", "MaxRetries"}},
		"ring":                 {redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "10.0.0.1:7000"}}), []string{"Ring", "NewClusterClient"}},
		"nil":                  {nil, []string{"nil"}},
		"a nil client":         {(*redis.Client)(nil), []string{"it is nil"}},
		"a nil Cluster client": {(*redis.ClusterClient)(nil), []string{"it is nil"}},
		"a wrapped Cluster": {withMore{redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"10.0.0.1:7000"}, ContextTimeoutEnabled: true})},
			[]string{"give the *redis.ClusterClient itself"}},
		"a wrapped client": {client: struct{ *redis.Client }{redis.NewClient(redistest.ClientOptions("10.0.0.1:7000"))}},
		"an AutoPipeliner": {pipeliner, []string{"AutoPipeliner"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if tt.client != nil && !slices.Contains(tt.want, "it is nil") {
				defer tt.client.Close()
			}
			err := redisconn.Check(tt.client)
			if len(tt.want) == 0 && err != nil {
				t.Fatalf("refused: %v", err)
			}
			if len(tt.want) > 0 && err == nil {
				t.Fatal("accepted")
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("got %v; want it to say %q", err, w)
				}
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the message leaks a password: %v", err)
			}
		})
	}
}

// withMore is a Cluster client inside a user's own type: a type switch does not recognize it.
type withMore struct{ *redis.ClusterClient }

func TestAddr(t *testing.T) {
	cluster := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"10.0.0.1:7000", "u:p@10.0.0.2:7000"}})
	defer cluster.Close()
	if got := redisconn.Addr(cluster); got != "10.0.0.1:7000,10.0.0.2:7000" {
		t.Errorf("got %q", got)
	}
}
