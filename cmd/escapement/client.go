package main

import (
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
)

// newClient makes the client of redis.url. It does not connect yet.
func (l *loaded) newClient() (*redis.Client, error) {
	if l.Redis.URL == "" {
		var faults faultList
		faults.add(l.from.of("redis.url"), "redis.url", "is empty: write redis://HOST:6379/0 there, or say it with ESCAPEMENT_REDIS_URL or --redis; without a Redis there is escapement dev")
		return nil, faults.err()
	}
	o, err := redisOptions(l.Redis.URL)
	if err != nil {
		return nil, err // load has read it once already, so it does not come to this
	}
	return redis.NewClient(o), nil
}

// unreachable says which Redis was tried and what to do, when that is the trouble.
func unreachable(addr string, err error, otherwise string) error {
	if errors.Is(err, locking.ErrUnreachable) {
		return fmt.Errorf("cannot reach Redis at %s: %w; start it, mend redis.url, or %s", addr, err, otherwise)
	}
	return err
}
