package cli

import (
	"maps"
	"strings"
)

// companions are settings of the servers that other settings name: credentials and TLS.
var companions = []struct {
	servers  func(*Config) string // "" names none
	settings []string             // paths; also the paths below them
}{
	{func(c *Config) string { return c.Redis.servers() }, []string{"redis.tls", "redis.sentinel_user", "redis.sentinel_password"}},
	{func(c *Config) string { return c.Locks.store() }, locksCompanions},
	{func(c *Config) string { return hostsOf(c.Locks.Servers...) }, locksCompanions},
}

var locksCompanions = []string{"locks.user", "locks.password", "locks.schema", "locks.tls"}

// servers names the servers of Redis, without credentials.
func (r Redis) servers() string {
	if r.Mode == modeStandalone {
		return hostsOf(r.URL)
	}
	return strings.Join(r.Addrs, ",")
}

// store is the driver; "" for locks in the Redis of the configuration.
func (l Locks) store() string {
	if l.inRedis() {
		return ""
	}
	return l.Driver
}

// hostsOf returns hosts and ports of URLs, or the paths of sockets.
func hostsOf(urls ...string) string {
	var all []string
	for _, text := range urls {
		if _, rest, found := strings.Cut(text, "://"); found {
			text = rest
		}
		text, _, _ = strings.Cut(text, "?")
		text = text[strings.LastIndexByte(text, '@')+1:]
		if hosts, _, _ := strings.Cut(text, "/"); hosts != "" {
			text = hosts
		}
		all = append(all, text)
	}
	return strings.Join(all, ",")
}

// override applies a source over the sources below it. Where it names other servers than they do,
// the companions of their servers are dropped: a secret goes only to the servers that it was
// written for. A source below without servers gives its companions to the servers above.
func (l *loaded) override(apply func()) {
	before, at := l.Config, maps.Clone(l.from.at)
	apply()
	for _, c := range companions {
		//guard:secret-servers P8 a password of the file does not go to the servers of a flag
		if had := c.servers(&before); had == "" || had == c.servers(&l.Config) {
			continue
		}
		for _, of := range leaves(&l.Config) {
			for _, path := range c.settings {
				if (of.path == path || strings.HasPrefix(of.path, path+".")) && l.from.at[of.path] == at[of.path] {
					if !of.value.IsZero() {
						l.dropped[of.path] = l.from.of(of.path)
					}
					of.value.SetZero()
					delete(l.from.at, of.path)
				}
			}
		}
	}
}
