package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"strings"

	"github.com/escapement/escapement/jobs/spec"
	"github.com/escapement/escapement/locking/redisconn"
)

// addressForms is for the help of whatever takes the URL of any Redis.
const addressForms = "" +
	`  redis://USER:PASSWORD@HOST:6379/0               one server
  unix:///PATH                                    a socket
  redis+cluster://USER:PASSWORD@HOST:6379,HOST:6379/
                                                  a Cluster, by some of its servers
  redis+sentinel://USER:PASSWORD@HOST:26379,HOST:26379/0?master_name=NAME
                                                  the master of sentinels, by some of them; what they want
                                                  themselves: &sentinel_user=USER&sentinel_password=PASSWORD
  rediss, rediss+cluster, rediss+sentinel         the same with TLS; for an authority and a certificate
                                                  of your own: ?ca_file=F&cert_file=F&key_file=F`

// same reports whether two addresses are written alike, as most addresses of one Redis are.
func same(a, b redisconn.Address) bool {
	return a.String() == b.String() && a.Database() == b.Database()
}

// address is the Redis of the configuration.
func (l *loaded) address() (redisconn.Address, error) {
	switch {
	case l.Redis.Mode != modeStandalone:
		return l.Redis.several()
	case l.Redis.URL == "":
		var faults faultList
		faults.add(l.from.of("redis.url"), "redis.url", "the URL is empty: write redis://HOST:6379/0 there, or say it with ESCAPEMENT_REDIS_URL or --redis; without a Redis there is escapement dev")
		return redisconn.Address{}, faults.err()
	}
	a, err := redisconn.Parse(l.Redis.URL) // load has read it once already
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
