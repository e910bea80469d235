package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/escapement/escapement/cmd/internal/print"
	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking/redisconn"
)

// AddressForms is for the help of whatever takes the URL of any Redis.
const AddressForms = "" +
	`  redis://USER:PASSWORD@HOST:6379/0               one server
  unix:///PATH                                    a socket
  redis+cluster://USER:PASSWORD@HOST:6379,HOST:6379/
                                                  a Cluster, by some of its servers
  redis+sentinel://USER:PASSWORD@HOST:26379,HOST:26379/0?master_name=NAME
                                                  the master of sentinels, by some of them; what they want
                                                  themselves: &sentinel_user=USER&sentinel_password=PASSWORD
  rediss, rediss+cluster, rediss+sentinel         the same with TLS; for an authority and a certificate
                                                  of your own: ?ca_file=F&cert_file=F&key_file=F`

// SameRedis reports whether two addresses are written alike, as most addresses of one Redis are.
func SameRedis(a, b redisconn.Address) bool {
	return a.String() == b.String() && a.Database() == b.Database()
}

// Address is the Redis of the configuration.
func (l *Loaded) Address() (redisconn.Address, error) {
	switch {
	case l.Redis.Mode != ModeStandalone:
		return l.Redis.several()
	case l.Redis.URL == "":
		var faults Faults
		faults.Add(l.From.Of("redis.url"), "redis.url", "the URL is empty: write redis://HOST:6379/0 there, or say it with ESCAPEMENT_REDIS_URL or --redis; without a Redis there is escapement dev")
		return redisconn.Address{}, faults.Err()
	}
	a, err := redisconn.Parse(l.Redis.URL) // Load has read it once already
	if err == nil && a.Sentinel != nil && l.Redis.SentinelPassword != "" {
		a.Sentinel.SentinelUsername, a.Sentinel.SentinelPassword = l.Redis.SentinelUser, l.Redis.SentinelPassword
	}
	if err == nil {
		err = a.SetTLS(redisconn.TLS(l.Redis.TLS.beside(l.Redis.URL)))
	}
	return a, err
}

// beside returns the settings that a URL does not have in its query.
func (t TLS) beside(text string) TLS {
	_, query, _ := strings.Cut(text, "?")
	own, _ := url.ParseQuery(query) // redisconn.Parse has read it
	for _, s := range settings(reflect.ValueOf(&t).Elem()) {
		if own.Has(s.key) {
			s.value.SetZero()
		}
	}
	return t
}

// several returns the Redis of a mode whose servers are in addrs, and whose other settings are in a
// URL without a host: as one complete URL.
func (r Redis) several() (redisconn.Address, error) {
	text := cmp.Or(r.URL, "redis:///")
	if r.URL == "" && r.TLS != (TLS{}) {
		text = "rediss:///"
	}
	one, err := redisconn.Parse(text)
	if err != nil {
		return redisconn.Address{}, err
	}
	u, err := url.Parse(text)
	switch {
	case one.One == nil:
		return redisconn.Address{}, fmt.Errorf("names servers, and the mode is %s: they come from redis.addrs; write redis://USER:PASSWORD@/0, or nothing, or leave redis.mode, addrs and master_name out", r.Mode)
	case err != nil:
		return redisconn.Address{}, errors.New("cannot be read as a URL") // Parse has read it
	case u.Scheme == "unix":
		return redisconn.Address{}, fmt.Errorf("is a socket, and the mode is %s; write redis://USER:PASSWORD@/0, or nothing", r.Mode)
	case u.Host != "":
		return redisconn.Address{}, fmt.Errorf("names the host %s, and the mode is %s: it comes from redis.addrs; write %s://USER:PASSWORD@/0, or nothing, or change redis.mode", spec.Clip(u.Host), r.Mode, u.Scheme)
	}
	u.Scheme, u.Host = u.Scheme+"+"+r.Mode, strings.Join(r.Addrs, ",")
	if r.Mode == modeSentinel {
		query := u.Query()
		query.Set("master_name", r.MasterName)
		query.Set("sentinel_user", r.SentinelUser)
		query.Set("sentinel_password", r.SentinelPassword)
		u.RawQuery = query.Encode()
	}
	a, err := redisconn.Parse(u.String())
	if err == nil {
		err = a.SetTLS(redisconn.TLS(r.TLS.beside(text)))
	}
	return a, err
}

// The values of redis.mode.
const (
	ModeStandalone = "standalone"
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
			_, err := c.Address()
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
	case r.SentinelPassword != "" && !r.usesSentinels():
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

// usesSentinels reports whether sentinels name the master.
func (r Redis) usesSentinels() bool {
	a, err := redisconn.Parse(r.URL)
	return r.Mode == modeSentinel || r.Mode == ModeStandalone && err == nil && a.Sentinel != nil
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
	if own, err := c.Address(); err == nil && SameRedis(own, next) {
		c.fault("redis.next", "is the Redis that is used already; leave it empty until the namespace is to move to another one")
	}
}
