package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
)

// newClient makes the client of the Redis that the configuration names. It does not connect yet.
func (l *loaded) newClient() (*redis.Client, error) {
	if l.Redis.Mode == modeSentinel {
		o, err := sentinelOptions(l.Redis)
		if err != nil {
			return nil, err // load has read it once already, so it does not come to this
		}
		return redis.NewFailoverClient(o), nil
	}
	if l.Redis.URL == "" {
		var faults faultList
		faults.add(l.from.of("redis.url"), "redis.url", "is empty: write redis://HOST:6379/0 there, or say it with ESCAPEMENT_REDIS_URL or --redis; without a Redis there is escapement dev")
		return nil, faults.err()
	}
	o, err := redisOptions(l.Redis.URL)
	if err != nil {
		return nil, err // as above
	}
	return redis.NewClient(o), nil
}

// redisName is what messages call the Redis of newClient. There is never a password in it.
func (l *loaded) redisName() string {
	if l.Redis.Mode == modeSentinel {
		return fmt.Sprintf("the master %s of the sentinels %s", l.Redis.MasterName, strings.Join(l.Redis.Addrs, ","))
	}
	if o, err := redisOptions(l.Redis.URL); err == nil {
		return o.Addr
	}
	return "embedded" // load has refused a URL that is wrong
}

// unreachable says which Redis was tried and what to do, when that is the trouble.
func (l *loaded) unreachable(err error, otherwise string) error {
	sentinel := l.Redis.Mode == modeSentinel
	if sentinel && errors.Is(err, redis.Nil) { // the answer of a sentinel that does not know the name
		var faults faultList
		faults.add(l.from.of("redis.master_name"), "redis.master_name", "the sentinels %s know no master of that name; write the one that `sentinel monitor NAME ...` gives them",
			strings.Join(l.Redis.Addrs, ","))
		return faults.err()
	}
	if !errors.Is(err, locking.ErrUnreachable) {
		return err
	}
	mend := "redis.url"
	if sentinel {
		mend = "redis.addrs"
	}
	return fmt.Errorf("cannot reach Redis at %s: %w; start it, mend %s, or %s", l.redisName(), err, mend, otherwise)
}
