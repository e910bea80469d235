package main

import (
	"cmp"
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

// addressForms is for the help of whatever takes the URL of any Redis.
const addressForms = "" +
	`  redis://USER:PASSWORD@HOST:6379/0               one server
  unix:///PATH                                    a socket
  redis+cluster://USER:PASSWORD@HOST:6379,HOST:6379/
                                                  a Cluster, by some of its servers
  redis+sentinel://USER:PASSWORD@HOST:26379,HOST:26379/0?master_name=NAME
                                                  the master of sentinels, by some of them; what they want
                                                  themselves: &sentinel_user=USER&sentinel_password=PASSWORD
  rediss, rediss+cluster, rediss+sentinel         the same with TLS`

// severalScheme begins a URL that names several servers.
var severalScheme = regexp.MustCompile(`^(rediss?)\+([a-z]{1,20})://`)

// schemes are those that a URL may begin with, anyScheme is what looks like one, and bareAddress
// an address without.
var (
	schemes     = []string{"redis", "redis+cluster", "redis+sentinel", "rediss", "rediss+cluster", "rediss+sentinel", "unix"}
	anyScheme   = regexp.MustCompile(`^([a-z][a-z+]{0,19})://`)
	bareAddress = regexp.MustCompile(`^[A-Za-z0-9.-]+:[0-9]{1,5}(/[0-9]*)?$`)
)

// address is a Redis as settings name it: one server, the master that sentinels name, or a Cluster.
type address struct {
	one      *redis.Options // exactly one of the three is there
	sentinel *redis.FailoverOptions
	cluster  *redis.ClusterOptions
}

// client makes a client. It does not connect yet.
func (a address) client() redis.UniversalClient {
	switch {
	case a.cluster != nil:
		return redis.NewClusterClient(a.cluster)
	case a.sentinel != nil:
		return redis.NewFailoverClient(a.sentinel)
	}
	return redis.NewClient(a.one)
}

// name is what messages call the Redis. There is never a password in it.
func (a address) name() string {
	switch {
	case a.cluster != nil:
		return "the Cluster of " + strings.Join(a.cluster.Addrs, ",")
	case a.sentinel != nil:
		return fmt.Sprintf("the master %s of the sentinels %s", a.sentinel.MasterName, strings.Join(a.sentinel.SentinelAddrs, ","))
	}
	return a.one.Addr
}

// database is the number of the database; 0 in a Cluster.
func (a address) database() int {
	switch {
	case a.cluster != nil:
		return 0
	case a.sentinel != nil:
		return a.sentinel.DB
	}
	return a.one.DB
}

// mistaken says what to write instead when err shows that what has answered is another kind of Redis than the address
// says; "" for any other error. Asked again it answers the same.
func (a address) mistaken(err error) string {
	if err == nil {
		return ""
	}
	reply, scheme := redis.Error(nil), "redis"
	elsewhere := errors.As(err, &reply) && (redis.HasErrorPrefix(reply, "MOVED") || redis.HasErrorPrefix(reply, "ASK") || redis.HasErrorPrefix(reply, "CROSSSLOT"))
	switch {
	case a.one != nil && elsewhere:
		at := a.one.Addr
		if a.one.Network == "unix" {
			at = "HOST:PORT"
		}
		if a.one.TLSConfig != nil {
			scheme = "rediss"
		}
		return fmt.Sprintf("Redis at %s is a server of a Cluster: write %s+cluster://%s/ (or redis.mode: cluster)", a.name(), scheme, at)
	case a.cluster != nil && strings.Contains(err.Error(), "cluster support disabled"):
		if a.cluster.TLSConfig != nil {
			scheme = "rediss"
		}
		return fmt.Sprintf("Redis at %s is one server, and no Cluster: write %s://%s/0 (or redis.mode: standalone)", strings.Join(a.cluster.Addrs, ","), scheme, a.cluster.Addrs[0])
	case a.sentinel != nil && strings.Contains(strings.ToLower(err.Error()), "unknown command 'sentinel'"):
		if a.sentinel.TLSConfig != nil {
			scheme = "rediss"
		}
		return fmt.Sprintf("what answers at %s is no sentinel: write the sentinels' own addresses (HOST:26379), or %s://%s/0 for that one server (or redis.mode: standalone)",
			strings.Join(a.sentinel.SentinelAddrs, ","), scheme, a.sentinel.SentinelAddrs[0])
	}
	return ""
}

// same says whether two addresses are written alike, which is how most that are one come about.
func (a address) same(b address) bool { return a.name() == b.name() && a.database() == b.database() }

// address is the Redis of the configuration.
func (l *loaded) address() (address, error) {
	switch {
	case l.Redis.Mode != modeStandalone:
		return l.Redis.several()
	case l.Redis.URL == "":
		var faults faultList
		faults.add(l.from.of("redis.url"), "redis.url", "is empty: write redis://HOST:6379/0 there, or say it with ESCAPEMENT_REDIS_URL or --redis; without a Redis there is escapement dev")
		return address{}, faults.err()
	}
	a, err := addressOf(l.Redis.URL) // load has read it once already
	if err == nil && a.sentinel != nil && l.Redis.SentinelPassword != "" {
		a.sentinel.SentinelUsername, a.sentinel.SentinelPassword = l.Redis.SentinelUser, l.Redis.SentinelPassword
	}
	return a, err
}

// addressOf reads a URL that names a Redis by itself, in one of addressForms. Its errors hold no part of it
// that could be a password.
func addressOf(text string) (address, error) {
	if bareAddress.MatchString(text) {
		return address{}, errors.New("has no scheme: write redis:// in front, as in redis://HOST:6379/0")
	}
	if s := anyScheme.FindStringSubmatch(text); s != nil && !slices.Contains(schemes, s[1]) {
		return address{}, fmt.Errorf("the scheme %s is not one of %s%s", s[1], strings.Join(schemes, ", "), didYouMean(s[1], schemes))
	}
	parts := severalScheme.FindStringSubmatch(text)
	if parts == nil {
		o, err := redisOptions(text)
		return address{one: o}, err
	}
	scheme, mode := parts[1], parts[2]
	user, hosts, query, err := severalHosts(text[len(parts[0]):])
	if err != nil {
		return address{}, err
	}
	r := Redis{Mode: mode, URL: scheme + "://" + user + query}
	port := "6379"
	if mode == modeSentinel {
		port = "26379"
		if err = r.takeSentinels(); err != nil {
			return address{}, err
		}
	}
	if r.Addrs, err = hostList(hosts, port); err != nil {
		return address{}, err
	}
	return r.several()
}

// several is the Redis of a mode whose servers stand in addrs, and the rest in a URL without a host.
func (r Redis) several() (a address, err error) {
	if r.Mode == modeCluster {
		a.cluster, err = clusterOptions(r)
	} else {
		a.sentinel, err = sentinelOptions(r)
	}
	return a, err
}

// severalHosts takes apart what stands behind "://", which url.Parse does not do with more than one port: the user with its
// "@", the hosts, and path and query.
func severalHosts(rest string) (user, hosts, query string, err error) {
	end := len(rest)
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		end = i
	}
	hosts, query = rest[:end], rest[end:]
	if strings.ContainsAny(query, "@#") { // a password that is not encoded
		return "", "", "", errPassword
	}
	if i := strings.LastIndexByte(hosts, '@'); i >= 0 {
		user, hosts = hosts[:i+1], hosts[i+1:]
	}
	return user, hosts, query, nil
}

// hostList reads HOST:PORT,HOST:PORT; a port may be left out. What is wrong is not shown: it may be a password.
func hostList(text, port string) ([]string, error) {
	if text == "" {
		return nil, errors.New("names no server; write them behind the @ with commas, HOST:" + port + ",HOST:" + port)
	}
	list := strings.Split(text, ",")
	for i, host := range list {
		if !strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
			host += ":" + port
		}
		if !hostPort(host) {
			return nil, fmt.Errorf("server %d of %d is not HOST:PORT; write them behind the @ with commas, HOST:%s,HOST:%s", i+1, len(list), port, port)
		}
		if slices.Contains(list[:i], host) {
			return nil, fmt.Errorf("server %d of %d is given twice; keep one", i+1, len(list))
		}
		list[i] = host
	}
	return list, nil
}

// hostPort says whether a text is a host and a port to connect to.
func hostPort(addr string) bool {
	host, port, err := net.SplitHostPort(addr)
	n, bad := strconv.Atoi(port)
	return err == nil && bad == nil && host != "" && !strings.ContainsAny(host, "@/ ") && n >= 1 && n <= 65535
}

// hostless reads redis.url in a mode whose servers stand in redis.addrs: user and password, TLS, timeouts.
func hostless(r Redis) (*redis.Options, error) {
	o := &redis.Options{}
	setClientRules(o)
	if r.URL == "" {
		return o, nil
	}
	if severalScheme.MatchString(r.URL) {
		return nil, fmt.Errorf("names servers, and the mode is %s: they come from redis.addrs; write redis://USER:PASSWORD@/0, or nothing, or leave redis.mode, addrs and master_name out", r.Mode)
	}
	o, err := redisOptions(r.URL)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(r.URL)
	switch {
	case err != nil:
		return nil, errPassword
	case u.Scheme == "unix":
		return nil, fmt.Errorf("is a socket, and the mode is %s; write redis://USER:PASSWORD@/0, or nothing", r.Mode)
	case u.Host != "":
		return nil, fmt.Errorf("names the host %s, and the mode is %s: it comes from redis.addrs; write %s://USER:PASSWORD@/0, or nothing, or change redis.mode", clip(u.Host), r.Mode, u.Scheme)
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // that of whichever server is called
	}
	return o, nil
}

// maskURL is the URL without its password, for print and messages. A user without one is masked too: who forgets the
// colon in front of a password has written it there.
func maskURL(text string) string {
	if scheme := severalScheme.FindString(text); scheme != "" {
		user, hosts, query, err := severalHosts(text[len(scheme):])
		if _, wrong := addressOf(text); cmp.Or(err, wrong) != nil {
			return masked
		}
		name, password, _ := strings.Cut(strings.TrimSuffix(user, "@"), ":")
		switch {
		case password != "":
			user = name + ":xxxxx@"
		case name != "":
			user = "xxxxx@"
		}
		return scheme + user + hosts + maskQuery(query)
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
