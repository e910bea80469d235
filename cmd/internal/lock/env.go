package lock

import (
	"maps"
	"slices"
	"strconv"

	"github.com/escapement/escapement/cmd/internal/command"
	"github.com/escapement/escapement/cmd/internal/config"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	opshttp "github.com/escapement/escapement/scheduler/ops/http"
)

// childEnv returns the environment of a command under a lock: this program's without its secrets,
// with the lock and its token.
func childEnv(a *command.App, lease *locking.Lease) []string {
	all := withoutSecrets(a.Env)
	all[config.LockVariable], all[config.TokenVariable] = lease.Name(), strconv.FormatInt(lease.Token(), 10)
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

// withoutSecrets returns an environment without this program's variables that hold a secret. An
// address stays unless a part of it is secret, and so does a variable that names a file: a command
// that calls this program needs both.
func withoutSecrets(env map[string]string) map[string]string {
	all := maps.Clone(env)
	drop := func(name string, shown func(string) string) {
		if text := all[name]; shown == nil || shown(text) != text {
			delete(all, name)
		}
	}
	shown := map[string]func(string) string{"redis.url": redisconn.Mask, "redis.next": redisconn.Mask, "locks.servers": config.MaskServer}
	for _, l := range config.Leaves(new(config.Config)) {
		if l.Secret {
			drop(l.Env(), shown[l.Path])
		}
	}
	drop(config.APITokenVariable, nil)
	drop(config.APIVariable, opshttp.ShowAddress)
	drop(config.MoveFromVariable, redisconn.Mask)
	drop(config.MoveToVariable, redisconn.Mask)
	return all
}
