package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	case modeSentinel:
		if _, err := sentinelOptions(r); err != nil {
			c.fault("redis.url", "%v", err)
		}
		c.sentinels(r.Addrs)
		if !masterPattern.MatchString(r.MasterName) {
			c.fault("redis.master_name", "%s is not a master's name; write the one that `sentinel monitor NAME ...` gives the sentinels", quote(r.MasterName))
		}
		return
	case modeCluster:
		c.fault("redis.mode", "cluster is not there yet; use standalone or sentinel")
	default:
		if len(r.Addrs) > 0 {
			c.fault("redis.addrs", "belongs to redis.mode: sentinel, and the mode is standalone; leave it empty, or change the mode")
		}
		if r.MasterName != "" {
			c.fault("redis.master_name", "belongs to redis.mode: sentinel, and the mode is standalone; leave it empty, or change the mode")
		}
	}
	if _, err := redisOptions(r.URL); r.URL != "" && err != nil {
		c.fault("redis.url", "%v", err)
	}
}

// sentinels judges redis.addrs.
func (c *checker) sentinels(addrs []string) {
	if len(addrs) == 0 {
		c.fault("redis.addrs", "is empty, and the mode is sentinel; write the sentinels there, such as [10.0.0.1:26379, 10.0.0.2:26379]")
	}
	for i, addr := range addrs {
		host, port, err := net.SplitHostPort(addr)
		n, bad := strconv.Atoi(port)
		switch {
		case err != nil || bad != nil || host == "" || strings.ContainsAny(host, "@/ ") || n < 1 || n > 65535:
			c.fault("redis.addrs", "%s is not a sentinel's HOST:PORT; write one like 10.0.0.1:26379", quote(addr))
		case slices.Contains(addrs[:i], addr):
			c.fault("redis.addrs", "%s is given twice; keep one", quote(addr))
		}
	}
}

// sentinelOptions are the settings of a client that asks sentinels who is master. The URL, where
// there is one, has no host; the rest of it is for the master, but TLS is for the sentinels too.
func sentinelOptions(r Redis) (*redis.FailoverOptions, error) {
	o := &redis.Options{}
	setClientRules(o)
	if r.URL != "" {
		var err error
		if o, err = redisOptions(r.URL); err != nil {
			return nil, err
		}
		u, err := url.Parse(r.URL)
		switch {
		case err != nil:
			return nil, errPassword
		case u.Scheme == "unix":
			return nil, errors.New("is a socket, and the mode is sentinel; write redis://USER:PASSWORD@/0, or nothing")
		case u.Host != "":
			return nil, fmt.Errorf("names the host %s, and the mode is sentinel: it comes from redis.addrs; write %s://USER:PASSWORD@/0, or nothing, or change redis.mode", clip(u.Host), u.Scheme)
		}
		if o.TLSConfig != nil {
			o.TLSConfig.ServerName = "" // that of whichever server is called
		}
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
