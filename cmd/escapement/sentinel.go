package main

import (
	"regexp"
	"slices"

	"github.com/redis/go-redis/v9"
)

// The values of redis.mode.
const (
	modeStandalone = "standalone"
	modeSentinel   = "sentinel"
	modeCluster    = "cluster"
)

// masterPattern is what Sentinel takes as a name without quotes.
var masterPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// mode judges redis.url, addrs and master_name, which redis.mode gives a meaning to.
func (c *checker) mode() {
	r := c.Redis
	switch r.Mode {
	case modeSentinel, modeCluster:
		if _, err := r.several(); err != nil {
			c.fault("redis.url", "%v", err)
		}
		c.servers(r)
	default:
		if _, err := addressOf(r.URL); r.URL != "" && err != nil {
			c.fault("redis.url", "%v", err)
		}
		if len(r.Addrs) > 0 {
			c.fault("redis.addrs", "belongs to redis.mode: sentinel or cluster, and the mode is standalone; leave it empty, or change the mode")
		}
	}
	switch {
	case r.Mode == modeSentinel && !masterPattern.MatchString(r.MasterName):
		c.fault("redis.master_name", "%s is not a master's name; write the one that `sentinel monitor NAME ...` gives the sentinels", quote(r.MasterName))
	case r.Mode != modeSentinel && r.MasterName != "":
		c.fault("redis.master_name", "belongs to redis.mode: sentinel, and the mode is %s; leave it empty, or change the mode", r.Mode)
	}
}

// servers judges redis.addrs.
func (c *checker) servers(r Redis) {
	whose, port, some := "a sentinel's", "26379", "the sentinels there, such as [10.0.0.1:26379, 10.0.0.2:26379]"
	if r.Mode == modeCluster {
		whose, port, some = "a server's", "6379", "some servers of the Cluster there, such as [10.0.0.1:6379, 10.0.0.2:6379]"
	}
	if len(r.Addrs) == 0 {
		c.fault("redis.addrs", "is empty, and the mode is %s; write %s", r.Mode, some)
	}
	for i, addr := range r.Addrs {
		switch {
		case !hostPort(addr):
			c.fault("redis.addrs", "%s is not %s HOST:PORT; write one like 10.0.0.1:%s", quote(addr), whose, port)
		case slices.Contains(r.Addrs[:i], addr):
			c.fault("redis.addrs", "%s is given twice; keep one", quote(addr))
		}
	}
}

// next judges redis.next.
func (c *checker) next() {
	if c.Redis.Next == "" {
		return
	}
	next, err := addressOf(c.Redis.Next)
	if err != nil {
		c.fault("redis.next", "%v", err)
		return
	}
	if own, err := c.address(); err == nil && own.same(next) {
		c.fault("redis.next", "is the Redis that is used already; leave it empty until the namespace is to move to another one")
	}
}

// sentinelOptions are the settings of a client that asks sentinels who is master. The URL, where
// there is one, has no host; the rest of it is for the master, but TLS is for the sentinels too.
func sentinelOptions(r Redis) (*redis.FailoverOptions, error) {
	o, err := hostless(r)
	if err != nil {
		return nil, err
	}
	return failover(o, r), nil
}

// failover is o for the master that the sentinels name.
func failover(o *redis.Options, r Redis) *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName: r.MasterName, SentinelAddrs: r.Addrs,
		Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig,
		Protocol: o.Protocol, ClientName: o.ClientName, DisableIdentity: o.DisableIdentity,
		MaxRetries: o.MaxRetries, MinRetryBackoff: o.MinRetryBackoff, MaxRetryBackoff: o.MaxRetryBackoff,
		DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: o.ContextTimeoutEnabled,
		PoolFIFO: o.PoolFIFO, PoolSize: o.PoolSize, PoolTimeout: o.PoolTimeout, MinIdleConns: o.MinIdleConns,
		MaxIdleConns: o.MaxIdleConns, MaxActiveConns: o.MaxActiveConns, MaxConcurrentDials: o.MaxConcurrentDials,
		PipelinePoolSize: o.PipelinePoolSize, PipelineReadBufferSize: o.PipelineReadBufferSize, PipelineWriteBufferSize: o.PipelineWriteBufferSize,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime, ConnMaxLifetimeJitter: o.ConnMaxLifetimeJitter,
	}
}
