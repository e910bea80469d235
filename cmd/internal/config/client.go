package config

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/escapement/escapement/scheduler"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/scheduler/ops"
)

// NewClient makes the client of the Redis that the configuration names. It does not connect yet.
func (l *Loaded) NewClient() (redis.UniversalClient, error) {
	a, err := l.Address()
	if err != nil {
		return nil, err
	}
	return a.Client(), nil
}

// Embedded is the name of the Redis inside this process.
const Embedded = "embedded"

// RedisName is what messages call the Redis of NewClient. There is never a password in it.
func (l *Loaded) RedisName() string {
	a, err := l.Address()
	if err != nil {
		return Embedded // Load has refused a URL that is wrong
	}
	return a.String()
}

// Explained adds to an error of the configuration's Redis the place that names this Redis, the
// cause and the remedy. A fault of the configuration becomes a fault of its setting. Any other
// error is returned as it is. otherwise is a further remedy when nothing answers, "" for none.
func (l *Loaded) Explained(err error, otherwise string) error {
	if err == nil || errors.As(err, new(*ops.UnreachableError)) { // the rest of a Cluster has answered
		return err
	}
	at, bad := l.Address()
	if bad != nil {
		return err // of the embedded one
	}
	if errors.Is(err, redislock.ErrUnconfirmed) {
		return fmt.Errorf("Redis at %s answers, and its replicas do not: %w; start replicas, or mend redis.confirm or redis.replicas", l.RedisName(), err)
	}
	t := TroubleOf(at, l.Namespace, err)
	switch {
	case t == nil:
		return err
	case t.Kind == redisconn.KindSetting:
		return l.badSetting(t)
	case t.Kind == redisconn.KindUnreachable && t.Setting == redisconn.SettingURL:
		if otherwise != "" {
			return fmt.Errorf("%s: %w, or %s", l.RedisFrom(), t, otherwise)
		}
	case t.Kind == redisconn.KindClosed:
		return t
	}
	return fmt.Errorf("%s: %w", l.RedisFrom(), t)
}

// RedisFrom is the flag, the variable or the line of the file that names the servers of Redis.
func (l *Loaded) RedisFrom() string {
	path := "redis.url"
	if l.Redis.Mode != ModeStandalone {
		path = "redis.addrs"
	}
	return l.From.Of(path).At(path)
}

// TroubleOf is the fault of the Redis of an address; nil where err is about something else.
func TroubleOf(at redisconn.Address, namespace string, err error) (t *redisconn.Trouble) {
	_ = errors.As(at.Explain(context.Background(), namespace, err), &t)
	return t
}

// settingOf is the path of the setting to be corrected. In mode standalone the URL has all
// settings.
func (l *Loaded) settingOf(s redisconn.Setting) string {
	switch {
	case s == redisconn.SettingSentinelPassword:
		return "redis.sentinel_password"
	case l.Redis.Mode == ModeStandalone:
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
func (l *Loaded) badSetting(t *redisconn.Trouble) error {
	path := l.settingOf(t.Setting)
	words := t.Error()
	if t.Password {
		words += "; " + EnvPrefix + strings.ToUpper(strings.ReplaceAll(path, ".", "_")) + "_FILE names a file that holds it, so that it stands in no command line"
	}
	var faults Faults
	faults.Add(l.From.Of(path), path, "%s%s", words, l.unused(t.Setting))
	return faults.Err()
}

// unused names the settings of other servers that could have been the cure: override has dropped
// them.
func (l *Loaded) unused(s redisconn.Setting) string {
	section := map[redisconn.Setting]string{redisconn.SettingTLS: "redis.tls", redisconn.SettingSentinelPassword: "redis.sentinel_password"}[s]
	if section == "" {
		return ""
	}
	for _, of := range Leaves(&l.Config) {
		at, dropped := l.dropped[of.Path]
		if !dropped || of.Path != section && !strings.HasPrefix(of.Path, section+".") {
			continue
		}
		words := fmt.Sprintf("; %s belongs to the servers that are named there, and is not used for others", at.At(of.Path))
		if strings.HasPrefix(l.RedisFrom(), EnvPrefix) {
			words += "; " + of.Env() + " would be used"
		}
		return words
	}
	return ""
}

// ConfirmReplicas is the value of redis.confirm that is not none.
const ConfirmReplicas = "replicas"

// Confirm returns how many replicas must have a grant; ConfirmMajority counts them at run time.
func (l *Loaded) Confirm() int {
	switch {
	case l.Redis.Confirm != ConfirmReplicas:
		return 0
	case l.Redis.Replicas > 0:
		return (l.Redis.Replicas + 1) / 2
	}
	return scheduler.ConfirmMajority
}

// Refused is the library's refusal of a configuration that Load let pass: still a
// fault of the configuration, without a line.
func (l *Loaded) Refused(err error) error {
	var faults Faults
	faults.Add(Place{File: l.From.File}, "", "%v", err)
	return faults.Err()
}
