package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler/ops"
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

// explained adds to an error of the configuration's Redis the place that names this Redis, the
// cause and the remedy. A fault of the configuration becomes a fault of its setting. Any other
// error is returned as it is. otherwise is a further remedy when nothing answers, "" for none.
func (l *loaded) explained(err error, otherwise string) error {
	if err == nil || errors.As(err, new(*ops.UnreachableError)) { // the rest of a Cluster has answered
		return err
	}
	at, bad := l.address()
	if bad != nil {
		return err // of the embedded one
	}
	if errors.Is(err, redislock.ErrUnconfirmed) {
		return fmt.Errorf("Redis at %s answers, and its replicas do not: %w; start replicas, or mend redis.confirm or redis.replicas", l.redisName(), err)
	}
	t := troubleOf(at, l.Namespace, err)
	switch {
	case t == nil:
		return err
	case t.Kind == redisconn.KindSetting:
		return l.badSetting(t)
	case t.Kind == redisconn.KindUnreachable && t.Setting == redisconn.SettingURL:
		if otherwise != "" {
			return fmt.Errorf("%s: %w, or %s", l.redisFrom(), t, otherwise)
		}
	case t.Kind == redisconn.KindClosed:
		return t
	}
	return fmt.Errorf("%s: %w", l.redisFrom(), t)
}

// redisFrom is the flag, the variable or the line of the file that names the servers of Redis.
func (l *loaded) redisFrom() string {
	path := "redis.url"
	if l.Redis.Mode != modeStandalone {
		path = "redis.addrs"
	}
	return l.from.of(path).at(path)
}

// troubleOf is the fault of the Redis of an address; nil where err is about something else.
func troubleOf(at redisconn.Address, namespace string, err error) (t *redisconn.Trouble) {
	_ = errors.As(at.Explain(context.Background(), namespace, err), &t)
	return t
}

// settingOf is the path of the setting to be corrected. In mode standalone the URL has all
// settings.
func (l *loaded) settingOf(s redisconn.Setting) string {
	switch {
	case s == redisconn.SettingSentinelPassword:
		return "redis.sentinel_password"
	case l.Redis.Mode == modeStandalone:
		return "redis.url"
	case s == redisconn.SettingMode:
		return "redis.mode"
	case s == redisconn.SettingMasterName:
		return "redis.master_name"
	}
	return "redis.url"
}

// badSetting is a fault of the configuration, exit code 3: Redis was reached and has answered, and
// will answer the same until the setting is another one.
func (l *loaded) badSetting(t *redisconn.Trouble) error {
	path := l.settingOf(t.Setting)
	words := t.Error()
	if t.Password {
		words += "; " + envPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_")) + "_FILE names a file that holds it, so that it stands in no command line"
	}
	var faults faultList
	faults.add(l.from.of(path), path, "%s%s", words, l.unused(t.Setting))
	return faults.err()
}

// unused names the settings of other servers that could have been the cure: override has dropped
// them.
func (l *loaded) unused(s redisconn.Setting) string {
	section := map[redisconn.Setting]string{redisconn.SettingTLS: "redis.tls", redisconn.SettingSentinelPassword: "redis.sentinel_password"}[s]
	if section == "" {
		return ""
	}
	for _, of := range leaves(&l.Config) {
		at, dropped := l.dropped[of.path]
		if !dropped || of.path != section && !strings.HasPrefix(of.path, section+".") {
			continue
		}
		words := fmt.Sprintf("; %s belongs to the servers that are named there, and is not used for others", at.at(of.path))
		if strings.HasPrefix(l.redisFrom(), envPrefix) {
			words += "; " + of.env() + " would be used"
		}
		return words
	}
	return ""
}

// evictsWithin is how much longer than for its lock a command waits for Redis' eviction policy.
const evictsWithin = 50 * time.Millisecond

// askEvicts reads the policy by which Redis drops keys: "" for none, for a policy that the user may
// not read, and for an unreachable Redis.
func askEvicts(client redis.UniversalClient) <-chan string {
	answer := make(chan string, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		policy, _ := redisconn.Evicts(ctx, client) // other faults show in the lock's own calls
		answer <- policy
	}()
	return answer
}
