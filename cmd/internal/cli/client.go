package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler"
)

// newClient makes the client of the Redis that the configuration names. It does not connect yet.
func (l *loaded) newClient() (redis.UniversalClient, error) {
	a, err := l.address()
	if err != nil {
		return nil, err
	}
	return a.Client(), nil
}

// embedded is the name of the Redis inside this process.
const embedded = "embedded"

// redisName is what messages call the Redis of newClient. There is never a password in it.
func (l *loaded) redisName() string {
	a, err := l.address()
	if err != nil {
		return embedded // load has refused a URL that is wrong
	}
	return a.String()
}

// badPassword is a fault of redis.url, exit code 3: Redis was reached and has
// answered, and will answer the same until the setting is another one. Neither
// the password nor the user is shown: who forgets the colon in front of a
// password has written it where the user stands.
func (l *loaded) badPassword(reply redis.Error) error {
	form := "redis://:PASSWORD@HOST:6379/0"
	if l.Redis.Mode != modeStandalone {
		form = "redis://:PASSWORD@/0"
	}
	var faults faultList
	faults.add(l.from.of("redis.url"), "redis.url", "Redis at %s %s: write %s, for a user of its own with USER in front of the colon; %sREDIS_URL_FILE names a file that holds the URL, so that it stands in no command line",
		l.redisName(), wanting(reply, "a password"), form, envPrefix)
	return faults.err()
}

// unreachable says which Redis was tried and what to do, when that is the trouble. What has answered as another kind of
// Redis than the configuration says is not unreachable, but a fault of the configuration.
func (l *loaded) unreachable(err error, otherwise string) error {
	at, _ := l.address() // which was good enough to make a client of
	if words := mistaken(at, err); words != "" {
		path := "redis.mode"
		if l.Redis.Mode == modeStandalone {
			path = "redis.url" // it says all by itself
		}
		var faults faultList
		faults.add(l.from.of(path), path, "%s", words)
		return faults.err()
	}
	if at.Sentinel != nil && errors.Is(err, redis.Nil) { // the answer of a sentinel that does not know the name
		path := "redis.master_name"
		if l.Redis.Mode == modeStandalone {
			path = "redis.url" // it says all by itself
		}
		var faults faultList
		faults.add(l.from.of(path), path, "the sentinels %s know no master of that name; write the one that `sentinel monitor NAME ...` gives them",
			strings.Join(at.Sentinel.SentinelAddrs, ","))
		return faults.err()
	}
	if reply := redis.Error(nil); errors.As(err, &reply) && redis.IsAuthError(reply) {
		if who := guarded(at); who != "" {
			return l.badSentinelPassword(who, reply)
		}
		return l.badPassword(reply)
	}
	if lacks := lacking(err, l.Namespace); lacks != "" {
		return fmt.Errorf("%w; the user of Redis at %s lacks %s; docs/operations.md has all that a user needs", err, l.redisName(), lacks)
	}
	if redisconn.Full(err) {
		return fullError{l.redisName(), err}
	}
	if !errors.Is(err, locking.ErrUnreachable) || errors.As(err, new(*scheduler.UnreachableError)) {
		return err
	}
	if errors.Is(err, redislock.ErrUnconfirmed) {
		return fmt.Errorf("Redis at %s answers, and its replicas do not: %w; start replicas, or mend redis.confirm or redis.replicas", l.redisName(), err)
	}
	if redisconn.ReadOnly(err) {
		return fmt.Errorf("Redis at %s answers, and takes no writes now: %w; if it is a replica, name its master, or the sentinels that know it (redis.mode); else try again later", l.redisName(), err)
	}
	mend := "redis.url"
	if l.Redis.Mode != modeStandalone {
		mend = "redis.addrs"
	}
	if encrypted(at) {
		mend += " (does it not speak TLS? then write redis and not rediss)"
	}
	return fmt.Errorf("cannot reach Redis at %s: %w; start it, mend %s, or %s", l.redisName(), err, mend, otherwise)
}

// fullError is an answer of a Redis that has no memory or disk left for what is to be written.
type fullError struct {
	redis string
	err   error
}

func (e fullError) Error() string {
	if strings.Contains(e.err.Error(), "MISCONF") {
		return fmt.Sprintf("Redis at %s cannot write to its disk and takes no writes; free space there, then run this again: %v", e.redis, e.err)
	}
	return fmt.Sprintf("Redis at %s is full: %s", e.redis, freeMemory)
}

func (e fullError) Unwrap() error { return e.err }

// freeMemory is what helps a Redis that is full.
const freeMemory = "raise its maxmemory, or delete what else is stored there; nodes go on by themselves"

// evictsWithin is how much longer than for its lock a command waits to hear whether Redis evicts.
const evictsWithin = 50 * time.Millisecond

// askEvicts asks for the policy by which Redis drops keys: "" comes when it drops none, does not say, or is not there.
func askEvicts(client redis.UniversalClient) <-chan string {
	answer := make(chan string, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		policy, _ := redisconn.Evicts(ctx, client) // what else is wrong is found by whoever uses it
		answer <- policy
	}()
	return answer
}
