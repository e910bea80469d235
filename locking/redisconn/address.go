package redisconn

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// schemes are the schemes of a URL for Parse.
const schemes = "redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster"

var (
	// severalScheme begins a URL that names several servers.
	multiScheme = regexp.MustCompile(`^(rediss?)\+(sentinel|cluster)://`)
	// anyScheme matches a scheme, bareAddress an address without one.
	anyScheme   = regexp.MustCompile(`^([a-z][a-z+-]{0,19})://`)
	bareAddress = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]{1,5}(/[0-9]*)?$`)
)

// Address is a Redis as a URL names it: one server, the master of sentinels, or a Cluster. Exactly one field is
// set. The options satisfy Check, and may be changed before Client is called.
type Address struct {
	One      *redis.Options
	Sentinel *redis.FailoverOptions
	Cluster  *redis.ClusterOptions
}

// Parse reads the URL of a Redis:
//
//	redis://USER:PASSWORD@HOST:6379/0                    one server; rediss:// with TLS
//	unix:///PATH?db=0                                    a socket
//	redis+sentinel://USER:PASSWORD@HOST,HOST:26379/0?master_name=NAME
//	redis+sentinel://USER:PASSWORD@HOST,HOST:26379/NAME/0
//	                                                     the master of these sentinels; rediss+sentinel:// with TLS
//	redis+cluster://USER:PASSWORD@HOST,HOST:6379/        the Cluster of these servers; rediss+cluster:// with TLS
//
// Not all sentinels or servers need be named. The user and the password are for the Redis; those for sentinels
// are sentinel_user and sentinel_password in the query. The query may also hold the options of redis.ParseURL,
// such as read_timeout=3s or pool_size=20, but not max_retries. Timeouts default to CallTimeout. With TLS it may
// hold ca_file, cert_file, key_file and server_name, the settings of a TLS, for servers and sentinels alike: Parse
// reads the files. No error holds a part of the URL that could be a password.
func Parse(text string) (Address, error) {
	rest, t := cutTLS(text)
	a, err := parse(rest)
	if err == nil {
		err = a.SetTLS(t)
	}
	if err != nil {
		return Address{}, err
	}
	return a, nil
}

// parse is Parse without the settings of a TLS. It reads no file.
func parse(text string) (Address, error) {
	if text == "" {
		return Address{}, errors.New("is empty: write redis://HOST:6379/0")
	}
	if bareAddress.MatchString(text) {
		return Address{}, errors.New("has no scheme: write redis:// in front, as in redis://HOST:6379/0")
	}
	if s := anyScheme.FindStringSubmatch(text); s != nil && !slices.Contains(strings.Split(schemes, ", "), s[1]) {
		return Address{}, fmt.Errorf("has the scheme %s, which is not one of %s", s[1], schemes)
	}
	parts := multiScheme.FindStringSubmatch(text)
	if parts == nil {
		o, err := options(text)
		return Address{One: o}, err
	}
	user, hosts, rest, err := splitHosts(text[len(parts[0]):])
	if err != nil {
		return Address{}, err
	}
	if parts[2] == "cluster" {
		return clusterAddress(parts[1]+"://"+user+rest, hosts)
	}
	return sentinelAddress(parts[1]+"://"+user, hosts, rest)
}

// Client returns a client. It does not connect. The caller closes the client.
func (a Address) Client() redis.UniversalClient {
	switch {
	case a.Cluster != nil:
		c := redis.NewClusterClient(a.Cluster)
		UseDialledEndpoints(c)
		return c
	case a.Sentinel != nil:
		return redis.NewFailoverClient(a.Sentinel)
	}
	return redis.NewClient(a.One)
}

// String names the Redis for messages. It holds no user and no password.
func (a Address) String() string {
	switch {
	case a.Cluster != nil:
		return "the Cluster of " + strings.Join(a.Cluster.Addrs, ",")
	case a.Sentinel != nil && len(a.Sentinel.SentinelAddrs) == 0: // of a client, which does not show its sentinels
		return sentinelMaster
	case a.Sentinel != nil:
		return fmt.Sprintf("the master %s of the sentinels %s", a.Sentinel.MasterName, strings.Join(a.Sentinel.SentinelAddrs, ","))
	case a.One != nil:
		return a.One.Addr
	}
	return "no Redis"
}

// addrs are the addresses of the servers or sentinels.
func (a Address) addrs() []string {
	switch {
	case a.Cluster != nil:
		return a.Cluster.Addrs
	case a.Sentinel != nil:
		return a.Sentinel.SentinelAddrs
	case a.One != nil:
		return []string{a.One.Addr}
	}
	return nil
}

// names are the addresses for messages.
func (a Address) names() string {
	if all := a.addrs(); len(all) > 0 {
		return strings.Join(all, ",")
	}
	return "their addresses"
}

// first is one of the addresses, for examples.
func (a Address) first() string {
	if all := a.addrs(); len(all) > 0 {
		return all[0]
	}
	return "HOST:6379"
}

// scheme is redis, or rediss with TLS.
func (a Address) scheme() string {
	if a.encrypted() {
		return "rediss"
	}
	return "redis"
}

// encrypted reports whether the address is one with TLS.
func (a Address) encrypted() bool {
	switch {
	case a.Cluster != nil:
		return a.Cluster.TLSConfig != nil
	case a.Sentinel != nil:
		return a.Sentinel.TLSConfig != nil
	}
	return a.One != nil && a.One.TLSConfig != nil
}

// Database is the number of the database; 0 in a Cluster.
func (a Address) Database() int {
	switch {
	case a.Sentinel != nil:
		return a.Sentinel.DB
	case a.One != nil:
		return a.One.DB
	}
	return 0
}

// masked replaces a URL that cannot be parsed: any part of it may be a password.
const masked = "***"

// Mask returns the URL of a Redis without its passwords, for messages. A user without a password is masked too,
// because it may be a password without its colon. A text that Parse would refuse becomes "***": any part of it may be
// the password.
func Mask(text string) string {
	if text == "" {
		return ""
	}
	rest, _ := cutTLS(text)
	if _, err := parse(rest); err != nil {
		return masked
	}
	if scheme := multiScheme.FindString(text); scheme != "" {
		user, hosts, rest, err := splitHosts(text[len(scheme):])
		if err != nil {
			return masked
		}
		name, password, _ := strings.Cut(strings.TrimSuffix(user, "@"), ":")
		switch {
		case password != "":
			user = name + ":xxxxx@"
		case name != "":
			user = "xxxxx@"
		}
		return scheme + user + hosts + maskQuery(rest)
	}
	u, err := url.Parse(text)
	if err != nil {
		return masked
	}
	if password, _ := u.User.Password(); password == "" && u.User.Username() != "" {
		u.User = url.User("xxxxx")
	}
	return u.Redacted()
}

// maskQuery returns the path and query of a URL without the sentinels' password.
func maskQuery(text string) string {
	path, query, _ := strings.Cut(text, "?")
	values, err := url.ParseQuery(query)
	if err != nil || !values.Has(sentinelPassword) {
		return text
	}
	values.Set(sentinelPassword, "xxxxx")
	return path + "?" + values.Encode()
}
