package main

import (
	"fmt"

	"github.com/redis/go-redis/v9"
)

// clusterOptions are the settings of a client of a Cluster. The URL, where there is one, has no host.
func clusterOptions(r Redis) (*redis.ClusterOptions, error) {
	o, err := hostless(r)
	if err != nil {
		return nil, err
	}
	if o.DB != 0 {
		return nil, fmt.Errorf("names the database %d, and a Cluster has none but 0; leave the number out", o.DB)
	}
	return clusterOf(o, r.Addrs), nil
}

// clusterOf is o for all servers of a Cluster, of which addrs are some. It follows redirections, as many as go-redis does by
// default: without them no client finds a slot that has moved.
func clusterOf(o *redis.Options, addrs []string) *redis.ClusterOptions {
	return &redis.ClusterOptions{
		Addrs: addrs, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		Protocol: o.Protocol, ClientName: o.ClientName, DisableIdentity: o.DisableIdentity,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: o.ContextTimeoutEnabled,
		PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize, PoolTimeout: o.PoolTimeout, MinIdleConns: o.MinIdleConns,
		MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns, MaxConcurrentDials: o.MaxConcurrentDials,
		PipelinePoolSize: o.PipelinePoolSize, PipelineReadBufferSize: o.PipelineReadBufferSize, PipelineWriteBufferSize: o.PipelineWriteBufferSize,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime, ConnMaxLifetimeJitter: o.ConnMaxLifetimeJitter,
		MaintNotificationsConfig: o.MaintNotificationsConfig,
		DisableRoutingPolicies:   true, // else the first command waits for what some server says of commands, also of one that hangs
	}
}
