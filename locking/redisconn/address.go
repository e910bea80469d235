package redisconn

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// schemes are those that a URL for Parse may begin with.
const schemes = "redis, rediss, unix, redis+sentinel, rediss+sentinel, redis+cluster, rediss+cluster"

var (
	// severalScheme begins a URL that names several servers.
	severalScheme = regexp.MustCompile(`^(rediss?)\+(sentinel|cluster)://`)
	// anyScheme is what looks like a scheme, bareAddress an address without one.
	anyScheme   = regexp.MustCompile(`^([a-z][a-z+-]{0,19})://`)
	bareAddress = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]{1,5}(/[0-9]*)?$`)
)

// Address is a Redis as a URL names it: one server, the master that sentinels name, or a Cluster. Exactly one
// field is set. Its options have what Check wants, and may be changed before Client is called.
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
//	                                                     the master of sentinels, by some of them; rediss+sentinel:// with TLS
//	redis+cluster://USER:PASSWORD@HOST,HOST:6379/        a Cluster, by some of its servers; rediss+cluster:// with TLS
//
// The user and the password are those of the Redis; what sentinels want themselves stands in the query as sentinel_user and
// sentinel_password. The query may also hold the options that redis.ParseURL knows, such as read_timeout=3s or pool_size=20, but not
// max_retries. Timeouts default to CallTimeout. No error holds a part of the URL that could be a password.
func Parse(text string) (Address, error) {
	if bareAddress.MatchString(text) {
		return Address{}, errors.New("has no scheme: write redis:// in front, as in redis://HOST:6379/0")
	}
	if s := anyScheme.FindStringSubmatch(text); s != nil && !slices.Contains(strings.Split(schemes, ", "), s[1]) {
		return Address{}, fmt.Errorf("has the scheme %s, which is not one of %s", s[1], schemes)
	}
	parts := severalScheme.FindStringSubmatch(text)
	if parts == nil {
		o, err := options(text)
		return Address{One: o}, err
	}
	user, hosts, rest, err := severalHosts(text[len(parts[0]):])
	if err != nil {
		return Address{}, err
	}
	if parts[2] == "cluster" {
		return clusterAddress(parts[1]+"://"+user+rest, hosts)
	}
	return sentinelAddress(parts[1]+"://"+user, hosts, rest)
}

// Client makes a client, which does not connect yet. The caller closes it.
func (a Address) Client() redis.UniversalClient {
	switch {
	case a.Cluster != nil:
		return redis.NewClusterClient(a.Cluster)
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
	case a.Sentinel != nil:
		return fmt.Sprintf("the master %s of the sentinels %s", a.Sentinel.MasterName, strings.Join(a.Sentinel.SentinelAddrs, ","))
	case a.One != nil:
		return a.One.Addr
	}
	return "no Redis"
}

// masked stands for a URL that cannot be read: any part of it may be a password.
const masked = "***"

// Mask returns the URL of a Redis without its passwords, for messages. A user without a password is masked too: who
// forgets the colon in front of a password has written it there. Of a URL that cannot be read nothing is shown.
func Mask(text string) string {
	if scheme := severalScheme.FindString(text); scheme != "" {
		user, hosts, rest, err := severalHosts(text[len(scheme):])
		if _, wrong := Parse(text); cmp.Or(err, wrong) != nil {
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

// maskQuery is the path and query of a URL without the password of sentinels.
func maskQuery(text string) string {
	path, query, _ := strings.Cut(text, "?")
	values, err := url.ParseQuery(query)
	if err != nil || !values.Has(sentinelPassword) {
		return text
	}
	values.Set(sentinelPassword, "xxxxx")
	return path + "?" + values.Encode()
}
