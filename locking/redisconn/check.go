package redisconn

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Check returns an error for each setting of client with which this library cannot keep its promises, with the
// option to set. It does not connect.
func Check(client redis.UniversalClient) error {
	if isNil(client) {
		return errors.New("redis client: it is nil; make one with redis.NewClient")
	}
	switch c := client.(type) {
	case *redis.Ring:
		return errors.New("redis client: a Ring spreads keys over servers that know nothing of each other, " +
			"so a lock may exist twice; use redis.NewClient, NewFailoverClient or NewClusterClient")
	case *redis.AutoPipeliner:
		return errors.New("redis client: an AutoPipeliner delays calls; use the client that it was made from")
	case interface{ Options() *redis.Options }:
		o := c.Options()
		return checkOptions(client, "redis.Options", o.MaxRetries, o.ContextTimeoutEnabled, min(o.ReadTimeout, o.WriteTimeout))
	case interface{ Options() *redis.ClusterOptions }:
		if _, itself := client.(*redis.ClusterClient); !itself {
			return fmt.Errorf("redis client: a %T hides a Cluster, whose masters would be taken for one server; give the *redis.ClusterClient itself, with hooks for what is added", client)
		}
		o := c.Options()
		return checkOptions(client, "redis.ClusterOptions", o.MaxRetries, o.ContextTimeoutEnabled, min(o.ReadTimeout, o.WriteTimeout))
	default:
		return fmt.Errorf("redis client: the settings of a %T cannot be read; use a *redis.Client or *redis.ClusterClient", client)
	}
}

// isNil reports whether client is nil, or a nil pointer.
func isNil(client redis.UniversalClient) bool {
	switch c := client.(type) {
	case nil:
		return true
	case *redis.Client:
		return c == nil
	case *redis.ClusterClient:
		return c == nil
	}
	return false
}

// checkOptions checks options after go-redis has set its defaults: a Client turns MaxRetries -1 into 0, a
// ClusterClient turns 0 into -1. A timeout of -2, which switches off all deadlines, reads as a negative one.
func checkOptions(client redis.UniversalClient, kind string, retries int, ctxTimeout bool, shorter time.Duration) error {
	var errs []error
	if retries > 0 {
		errs = append(errs, fmt.Errorf("redis client %s: MaxRetries is %d: a repeated command hides a lost reply; set %s.MaxRetries to -1",
			Addr(client), retries, kind))
	}
	if !ctxTimeout {
		errs = append(errs, fmt.Errorf("redis client %s: ContextTimeoutEnabled is false: a hung server would hold calls past a lease's end; set %s.ContextTimeoutEnabled to true",
			Addr(client), kind))
	}
	if shorter < 0 {
		errs = append(errs, fmt.Errorf("redis client %s: ReadTimeout or WriteTimeout is -2, which switches off the deadlines of contexts: a hung server would hold calls for ever; set %s.ReadTimeout and WriteTimeout to -1, or more than 0",
			Addr(client), kind))
	}
	return errors.Join(errs...)
}

// failoverAddr is go-redis' address of a client of sentinels.
const failoverAddr = "FailoverClient"

// sentinelMaster names the Redis of such a client.
const sentinelMaster = "the master that Sentinel names"

// Addr returns the addresses that client was made with, for messages, without user and password.
func Addr(client redis.UniversalClient) string {
	switch c := client.(type) {
	case interface{ Options() *redis.Options }:
		if a := c.Options().Addr; a != failoverAddr {
			return withoutUser(a)
		}
		return sentinelMaster
	case interface{ Options() *redis.ClusterOptions }:
		addrs := make([]string, 0, len(c.Options().Addrs))
		for _, a := range c.Options().Addrs {
			addrs = append(addrs, withoutUser(a))
		}
		return strings.Join(addrs, ",")
	}
	return fmt.Sprintf("%T", client)
}

// withoutUser cuts off a user and password, as in "user:secret@host:6379".
func withoutUser(addr string) string {
	return addr[strings.LastIndexByte(addr, '@')+1:]
}
