package redlock

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

func TestRefusedConfig(t *testing.T) {
	closed := func(c redis.UniversalClient) redis.UniversalClient {
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	at := func(addrs ...string) (clients []redis.UniversalClient) {
		for _, a := range addrs {
			clients = append(clients, closed(redis.NewClient(redistest.ClientOptions(a))))
		}
		return clients
	}
	three := at("10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1")
	otherDB := redistest.ClientOptions("10.0.0.1:1")
	otherDB.DB = 1
	tests := map[string]struct {
		clients []redis.UniversalClient
		cfg     Config
		want    string // in the error; "": accepted
	}{
		"three":                {clients: three},
		"none":                 {nil, Config{}, "masters are 0"},
		"one":                  {three[:1], Config{}, "masters are 1; use an odd number, at least 3"},
		"even":                 {at("a:1", "b:1", "c:1", "d:1"), Config{}, "masters are 4"},
		"nil":                  {[]redis.UniversalClient{three[0], nil, three[2]}, Config{}, "masters[1] is refused: redis client: it is nil"},
		"retries":              {append(three[:2:2], closed(redis.NewClient(&redis.Options{Addr: "c:1", ContextTimeoutEnabled: true}))), Config{}, "masters[2] is refused: redis client c:1: MaxRetries"},
		"twice":                {at("a:1", "b:1", "a:1"), Config{}, "masters[2] is a:1, as masters[0]"},
		"two databases of one": {append(three[:2:2], closed(redis.NewClient(otherDB))), Config{}, "masters[2] is 10.0.0.1:1"},
		"cluster": {append(three[:2:2], closed(redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{"c:1"}, ContextTimeoutEnabled: true}))),
			Config{}, "masters[2] is a Redis Cluster"},
		"namespace":        {three, Config{Namespace: "a:redlock:b"}, `Config.Namespace is "a:redlock:b"; its locks could have the keys of others in namespace "a"`},
		"timeout":          {three, Config{MasterTimeout: time.Minute}, "Config.MasterTimeout is 1m0s; use 1ms to 2s"},
		"max ttl":          {three, Config{MaxTTL: time.Millisecond}, "Config.MaxTTL is 1ms, less than four times MasterTimeout 50ms"},
		"call timeout":     {three, Config{MasterTimeout: time.Second, CallTimeout: time.Second}, "Config.CallTimeout is 1s, less than twice MasterTimeout 1s; use at least 2s"},
		"negative call":    {three, Config{CallTimeout: -1}, "Config.CallTimeout is -1ns"},
		"negative margin":  {three, Config{Margin: -1}, "Config.Margin is -1ns, which is negative"},
		"slow masters":     {clients: three, cfg: Config{MasterTimeout: 2 * time.Second}},
		"longest":          {clients: three, cfg: Config{MaxTTL: 60 * 24 * time.Hour}},
		"too long":         {three, Config{MaxTTL: 60*24*time.Hour + 1}, "Config.MaxTTL is 1440h0m0.000000001s; use at most 1440h0m0s"},
		"would overflow":   {three, Config{MaxTTL: math.MaxInt64}, "use at most 1440h0m0s"},
		"nil of a type":    {[]redis.UniversalClient{three[0], (*redis.Client)(nil), three[2]}, Config{}, "masters[1] is refused: redis client: it is nil"},
		"nil of a cluster": {[]redis.UniversalClient{three[0], (*redis.ClusterClient)(nil), three[2]}, Config{}, "masters[1] is a Redis Cluster"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := New(tt.clients, tt.cfg)
			var refused *locking.InputError
			switch {
			case tt.want == "" && err != nil:
				t.Fatalf("refused: %v", err)
			case tt.want != "" && (!errors.As(err, &refused) || !strings.Contains(err.Error(), tt.want)):
				t.Fatalf("got %v; want an *InputError that says %q", err, tt.want)
			}
			if boot := Bootstrap(t.Context(), tt.clients, tt.cfg); tt.want != "" && !errors.As(boot, &refused) {
				t.Errorf("Bootstrap: %v; want it to refuse the same", boot)
			}
		})
	}
}
