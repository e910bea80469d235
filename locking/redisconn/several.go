package redisconn

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

// sentinelPassword is the query parameter for the sentinels' password.
const sentinelPassword = "sentinel_password"

// masterName matches a name that Sentinel accepts without quotes.
var masterName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// splitHosts splits the text after "://" into the user with its "@", the hosts, and path and query. url.Parse
// cannot do that with more than one port.
func splitHosts(text string) (user, hosts, rest string, err error) {
	end := len(text)
	if i := strings.IndexAny(text, "/?#"); i >= 0 {
		end = i
	}
	hosts, rest = text[:end], text[end:]
	if strings.ContainsAny(rest, "@#") { // a password that is not encoded
		return "", "", "", errPassword
	}
	if i := strings.LastIndexByte(hosts, '@'); i >= 0 {
		user, hosts = hosts[:i+1], hosts[i+1:]
	}
	return user, hosts, rest, nil
}

// hostList parses HOST:PORT,HOST:PORT, with a default port. Its errors show no part of it, which may be a password.
func hostList(text, port string) ([]string, error) {
	if text == "" {
		return nil, errors.New("names no server; write them after the @ with commas, HOST:" + port + ",HOST:" + port)
	}
	list := strings.Split(text, ",")
	for i, host := range list {
		if !strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
			host += ":" + port
		}
		if !hostPort(host) {
			return nil, fmt.Errorf("is wrong: server %d of %d is not HOST:PORT; write them after the @ with commas, HOST:%s,HOST:%s", i+1, len(list), port, port)
		}
		if slices.Contains(list[:i], host) {
			return nil, fmt.Errorf("names server %d of %d twice; keep one", i+1, len(list))
		}
		list[i] = host
	}
	return list, nil
}

// hostPort reports whether addr is a host and a port.
func hostPort(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	n, bad := strconv.Atoi(port)
	return err == nil && bad == nil && host != "" && !strings.ContainsAny(host, "@/ ") && n >= 1 && n <= 65535
}

// optionsWithoutHosts parses a URL whose hosts were cut out: user and password, TLS, timeouts.
func optionsWithoutHosts(text string) (*redis.Options, error) {
	o, err := options(text)
	if err != nil {
		return nil, err
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // empty: the host of each server
	}
	return o, nil
}

// clusterAddress returns the Cluster of some hosts; text is the URL without them.
func clusterAddress(text, hosts string) (Address, error) {
	o, err := optionsWithoutHosts(text)
	if err != nil {
		return Address{}, err
	}
	if o.DB != 0 {
		return Address{}, fmt.Errorf("names the database %d, and a Cluster has none but 0; leave the number out", o.DB)
	}
	addrs, err := hostList(hosts, "6379")
	if err != nil {
		return Address{}, err
	}
	return Address{Cluster: clusterOptions(o, addrs)}, nil
}

// clusterOptions applies o to a Cluster with some of its servers. It leaves MaxRedirects at go-redis' default.
func clusterOptions(o *redis.Options, addrs []string) *redis.ClusterOptions {
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
		DisableRoutingPolicies:   true, // else the first command waits for COMMAND at a server that may hang
	}
}

// sentinelAddress returns the master of some sentinels. Path and query hold its name and the sentinels' own
// password. All else is for the master; TLS is for both.
func sentinelAddress(text, hosts, rest string) (Address, error) {
	path, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return Address{}, errPassword
	}
	name, user, password := values.Get("master_name"), values.Get("sentinel_user"), values.Get(sentinelPassword)
	if first, after, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); name == "" && strings.Trim(first, "0123456789") != "" {
		name, path = first, "/"+after
	}
	switch {
	case !masterName.MatchString(name):
		return Address{}, errors.New("has no name of the master; add ?master_name=NAME, as in the sentinels' `sentinel monitor NAME ...`")
	case user != "" && password == "":
		return Address{}, errors.New("names a user of the sentinels without a password; add sentinel_password=PASSWORD")
	}
	for _, name := range []string{"master_name", "sentinel_user", sentinelPassword} {
		values.Del(name)
	}
	if text += path; len(values) > 0 {
		text += "?" + values.Encode()
	}
	o, err := optionsWithoutHosts(text)
	if err != nil {
		return Address{}, err
	}
	addrs, err := hostList(hosts, "26379")
	if err != nil {
		return Address{}, err
	}
	s := sentinelOptions(o)
	s.MasterName, s.SentinelAddrs, s.SentinelUsername, s.SentinelPassword = name, addrs, user, password
	return Address{Sentinel: s}, nil
}

// sentinelOptions applies o to the master of sentinels.
func sentinelOptions(o *redis.Options) *redis.FailoverOptions {
	return &redis.FailoverOptions{
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
