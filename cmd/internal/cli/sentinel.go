package cli

import (
	"errors"
	"fmt"
	"net"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/locking/redisconn"
)

// The values of redis.mode.
const (
	modeStandalone = "standalone"
	modeSentinel   = "sentinel"
	modeCluster    = "cluster"
)

// masterPattern matches the names that Sentinel takes without quotes.
var masterPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

// hostPort reports whether a text is a host and a port to connect to.
func hostPort(addr string) bool {
	_, _, err := net.SplitHostPort(addr)
	_, wrong := redisconn.Parse("redis+cluster://" + addr)
	return err == nil && wrong == nil && !strings.ContainsAny(addr, ",@/?#")
}

// mode judges redis.url, addrs and master_name, which redis.mode gives a meaning to.
func (c *checker) mode() {
	r := c.Redis
	switch r.Mode {
	case modeSentinel, modeCluster:
		c.servers(r)
		// Addrs and MasterName are valid in the sample, so that any fault is the URL's.
		sample := Redis{Mode: r.Mode, URL: r.URL, Addrs: []string{"any:1"}, MasterName: "any", TLS: r.TLS}
		_, err := sample.several()
		c.redisFault(err)
	default:
		if r.URL != "" {
			_, err := c.address()
			c.redisFault(err)
		} else if r.TLS != (TLS{}) {
			c.fault("redis.tls", "says nothing without redis.url; set that, or leave this out")
		}
		if len(r.Addrs) > 0 {
			c.fault("redis.addrs", "belongs to redis.mode: sentinel or cluster, and the mode is standalone; leave it empty, or change the mode")
		}
	}
	switch {
	case r.Mode == modeSentinel && !masterPattern.MatchString(r.MasterName):
		c.fault("redis.master_name", "%s is not a master's name; write the one that `sentinel monitor NAME ...` gives the sentinels", print.Quote(r.MasterName))
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

// redisFault reports the fault of redis.url, or of a setting of redis.tls.
func (c *checker) redisFault(err error) {
	if of := new(redisconn.TLSError); errors.As(err, &of) && c.Redis.TLS.has(of.Setting) {
		c.fault("redis.tls."+of.Setting, "%v", of.Err)
	} else if err != nil {
		c.fault("redis.url", "the URL %v", err)
	}
}

// has reports whether the setting of this key is given.
func (t TLS) has(key string) bool {
	return slices.ContainsFunc(settings(reflect.ValueOf(t)), func(s setting) bool { return s.key == key && s.value.String() != "" })
}

// asksSentinels reports whether sentinels name the master.
func (r Redis) asksSentinels() bool {
	a, err := redisconn.Parse(r.URL)
	return r.Mode == modeSentinel || r.Mode == modeStandalone && err == nil && a.Sentinel != nil
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
			c.fault(path, "%s is not %s HOST:PORT; write one like 10.0.0.1:%s", print.Quote(addr), whose, port)
		case slices.Contains(r.Addrs[:i], addr):
			c.fault(path, "%s is given twice; keep one", print.Quote(addr))
		}
	}
}

// next judges redis.next.
func (c *checker) next() {
	if c.Redis.Next == "" {
		return
	}
	next, err := redisconn.Parse(c.Redis.Next)
	if err != nil {
		c.fault("redis.next", "the URL %v", err)
		return
	}
	if own, err := c.address(); err == nil && same(own, next) {
		c.fault("redis.next", "is the Redis that is used already; leave it empty until the namespace is to move to another one")
	}
}
