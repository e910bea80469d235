package redistest

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// TB is the part of testing.TB that is used here. A plain interface keeps the
// testing package out of programs that embed a server.
type TB interface {
	Helper()
	Cleanup(func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	TempDir() string
}

// ClientOptions returns this project's client settings: no retries by go-redis, contexts obeyed,
// one dial attempt per call, and no connections or goroutines in the background. Change any of
// them.
func ClientOptions(addr string) *redis.Options {
	return &redis.Options{
		Addr:                  addr,
		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		DialTimeout:           2 * time.Second,
		ReadTimeout:           3 * time.Second,
		WriteTimeout:          3 * time.Second,
		DisableIdentity:       true,
		MaintNotificationsConfig: &maintnotifications.Config{
			Mode: maintnotifications.ModeDisabled,
		},
	}
}

// standstill is longer than anything takes on a machine that still does something: how fast a machine is fails no test.
const standstill = 3 * time.Minute

// patientOptions returns the settings for a test's own calls: only a standstill ends a call.
func patientOptions(addr string) *redis.Options {
	o := ClientOptions(addr)
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = standstill, standstill, standstill
	return o
}

// The shape of every Cluster.
const (
	clusterMasters = 3 // on real servers each has one replica
	clusterSlots   = 16384
)

// clusterOptions returns the same settings for a client of a Cluster.
func clusterOptions(addrs []string) *redis.ClusterOptions {
	o := ClientOptions("")
	return &redis.ClusterOptions{
		Addrs:                    addrs,
		MaxRetries:               o.MaxRetries,
		DialerRetries:            o.DialerRetries,
		ContextTimeoutEnabled:    o.ContextTimeoutEnabled,
		DialTimeout:              o.DialTimeout,
		ReadTimeout:              o.ReadTimeout,
		WriteTimeout:             o.WriteTimeout,
		DisableIdentity:          o.DisableIdentity,
		MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
}

// dialOver returns dial over networks: road returns the one for an address, nil for a healthy one.
func dialOver(road func(addr string) *Net, dial Dialer) Dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if n := road(addr); n != nil {
			return n.Wrap(dial)(ctx, network, addr)
		}
		return dial(ctx, network, addr)
	}
}
