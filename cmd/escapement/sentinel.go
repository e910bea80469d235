package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

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
	switch {
	case r.SentinelUser != "" && r.SentinelPassword == "":
		c.fault("redis.sentinel_user", "has no password; set redis.sentinel_password too")
	case r.SentinelPassword != "" && !r.asksSentinels():
		c.fault("redis.sentinel_password", "is for sentinels, and none are asked with redis.mode: %s; leave it empty, or change the mode", r.Mode)
	}
}

// asksSentinels says whether sentinels are asked for the master.
func (r Redis) asksSentinels() bool {
	scheme := severalScheme.FindStringSubmatch(r.URL)
	return r.Mode == modeSentinel || r.Mode == modeStandalone && scheme != nil && scheme[2] == modeSentinel
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
		path := fmt.Sprintf("redis.addrs[%d]", i)
		switch {
		case !hostPort(addr):
			c.fault(path, "%s is not %s HOST:PORT; write one like 10.0.0.1:%s", quote(addr), whose, port)
		case slices.Contains(r.Addrs[:i], addr):
			c.fault(path, "%s is given twice; keep one", quote(addr))
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

// sentinelPassword is the word of a URL's query for what sentinels want themselves.
const sentinelPassword = "sentinel_password"

// takeSentinels takes what is for the sentinels out of the URL's query.
func (r *Redis) takeSentinels() error {
	before, query, _ := strings.Cut(r.URL, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return errPassword
	}
	r.MasterName, r.SentinelUser, r.SentinelPassword = values.Get("master_name"), values.Get("sentinel_user"), values.Get(sentinelPassword)
	switch {
	case !masterPattern.MatchString(r.MasterName):
		return errors.New("does not say what the sentinels call the master; add ?master_name=NAME, the one that `sentinel monitor NAME ...` gives them")
	case r.SentinelUser != "" && r.SentinelPassword == "":
		return errors.New("names a user of the sentinels without a password; add sentinel_password=PASSWORD")
	}
	for _, name := range []string{"master_name", "sentinel_user", sentinelPassword} {
		values.Del(name)
	}
	if r.URL = before; len(values) > 0 {
		r.URL += "?" + values.Encode()
	}
	return nil
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
		MasterName: r.MasterName, SentinelAddrs: r.Addrs, SentinelUsername: r.SentinelUser, SentinelPassword: r.SentinelPassword,
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

// guarded are the sentinels of an address that refuse what they are told as their password; "" when none does, and then it was
// the master. An answer that reaches us is of any of them, or of the master, and does not say whose it is.
func guarded(at address) string {
	if at.sentinel == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	refused := make([]bool, len(at.sentinel.SentinelAddrs))
	var asked sync.WaitGroup
	for i, addr := range at.sentinel.SentinelAddrs {
		o := &redis.Options{Addr: addr, Username: at.sentinel.SentinelUsername, Password: at.sentinel.SentinelPassword, TLSConfig: at.sentinel.TLSConfig}
		setClientRules(o)
		asked.Go(func() {
			client := redis.NewClient(o)
			defer client.Close()
			refused[i] = redis.IsAuthError(client.Ping(ctx).Err())
		})
	}
	asked.Wait()
	var who []string
	for i, addr := range at.sentinel.SentinelAddrs {
		if refused[i] {
			who = append(who, addr)
		}
	}
	return strings.Join(who, ",")
}

// badSentinelPassword is badPassword for what sentinels want themselves.
func (l *loaded) badSentinelPassword(who string, reply redis.Error) error {
	var faults faultList
	faults.add(l.from.of("redis.sentinel_password"), "redis.sentinel_password", "the sentinel at %s %s: write the sentinels' own, with redis.sentinel_user for a user of its own; the one in redis.url is the master's. %sREDIS_SENTINEL_PASSWORD_FILE names a file that holds it",
		who, wanting(reply, "a password of its own"), envPrefix)
	return faults.err()
}

// wanting says what the reply of a server, or a sentinel, means about the password.
func wanting(reply redis.Error, password string) string {
	if redis.HasErrorPrefix(reply, "WRONGPASS") {
		return "refuses the password, or the user, that is given there (WRONGPASS)"
	}
	return "wants " + password + ", and none is given (NOAUTH)"
}
