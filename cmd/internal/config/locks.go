package config

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
)

// Locks is the store of locks: locks of the command lock, and locks that runs of jobs with a guard
// hold besides.
type Locks struct {
	// Driver is the kind of the store. Default redis.
	Driver string `yaml:"driver" words:"redis redlock zookeeper etcd postgres"`
	// Servers are the servers of the store: URLs for redis, redlock, etcd and postgres, HOST:PORT
	// for zookeeper. Default, for redis: the server of redis.url.
	Servers []string `yaml:"servers" secret:"true"`
	// User and Password are for all of Servers: a user of Redis, etcd or PostgreSQL, or of the
	// scheme digest of ZooKeeper, whose nodes then belong to this user alone. A password in Servers
	// is then refused. Default "": user and password in Servers.
	User     string `yaml:"user"`
	Password string `yaml:"password" secret:"true"`
	// Schema of the tables, for postgres: one in which no other role may create. Default public.
	Schema string `yaml:"schema"`
	// TLS is for the connections to Servers, which begin with rediss or https; ZooKeeper and
	// PostgreSQL use TLS as soon as one of its settings is given.
	TLS TLS `yaml:"tls"`
}

// TLS names files in PEM and a name, for connections with TLS.
type TLS struct {
	// CAFile has the authorities to trust. Default "": the system's.
	CAFile string `yaml:"ca_file"`
	// CertFile and KeyFile are the client's certificate and its key; they are read again for each
	// connection. Default "": none.
	CertFile string `yaml:"cert_file"`
	KeyFile  string `yaml:"key_file"`
	// ServerName is expected in the certificate of each server. Default "": the host's name.
	ServerName string `yaml:"server_name"`
}

// driverFlag is where a command's own store comes from.
const driverFlag = "--driver"

// fullProgram has all drivers.
const fullProgram = "escapement-full"

// InRedis reports whether the locks are in the Redis of the configuration.
func (l Locks) InRedis() bool { return l.Driver == lockstore.Redis && len(l.Servers) == 0 }

// fault returns the fault of the store's settings: the setting's key, and words.
func (l Locks) fault() (key, words string) {
	open, known := lockstore.Drivers[l.Driver]
	switch {
	case !known:
		return "driver", fmt.Sprintf("%s is not in this program, which has %s; %s has it: go install . in cmd/%s of a clone", l.Driver, strings.Join(slices.Sorted(maps.Keys(lockstore.Drivers)), ", "), fullProgram, fullProgram)
	case l.InRedis():
		return l.misplaced()
	case len(l.Servers) == 0:
		return "servers", fmt.Sprintf("is empty, and the driver is %s; name its servers", l.Driver)
	}
	if key, words = l.misplaced(); key != "" {
		return key, words
	}
	c := l.Store()
	c.Margin, c.Logger, c.Check = lockstore.Margin, slog.New(slog.DiscardHandler), true
	_, end, err := open(c)
	if of := new(redisconn.TLSError); errors.As(err, &of) && l.TLS.has(of.Setting) {
		return "tls." + of.Setting, of.Err.Error()
	}
	if err != nil {
		return "servers", err.Error()
	}
	end()
	return "", ""
}

// Store returns the driver's part of the settings.
func (l Locks) Store() lockstore.Config {
	return lockstore.Config{Servers: l.Servers, User: l.User, Password: l.Password, Schema: l.Schema, TLS: redisconn.TLS(l.TLS)}
}

// misplaced returns a setting that the store does not use: its key, and words.
func (l Locks) misplaced() (key, words string) {
	for _, s := range []struct {
		key   string
		given bool
	}{{"user", l.User != ""}, {"password", l.Password != ""}, {"tls", l.TLS != TLS{}}} {
		if s.given && l.InRedis() {
			return s.key, "is for locks.servers, which is empty; the Redis of redis.url has its own"
		}
	}
	switch {
	case l.Schema != "" && l.Driver != lockstore.Postgres:
		return "schema", fmt.Sprintf("is for the driver %s, and locks.driver is %s; leave it out", lockstore.Postgres, l.Driver)
	case l.User != "" && l.Password == "" && l.Driver != lockstore.Postgres:
		return "user", "has no password; set locks.password too"
	}
	return "", ""
}

// locks judges where locks are.
func (c *checker) locks() {
	if c.faults.has("locks.driver") || c.faults.has("locks.servers") {
		return
	}
	if key, words := c.Locks.fault(); key != "" {
		c.fault("locks."+key, "%s", words)
	}
}

// LocksFrom is the flag, the variable or the line of the file that names the servers of the locks.
func (l *Loaded) LocksFrom() string { return l.From.Of("locks.servers").At("locks.servers") }

// OpenLocks makes the locker of locks.driver, in the Redis of NewClient where no other is named.
func (l *Loaded) OpenLocks(log *slog.Logger, margin time.Duration, newClient func() (redis.UniversalClient, error)) (*locking.Locker, func(), error) {
	if l.Locks.InRedis() {
		client, err := newClient()
		if err != nil {
			return nil, nil, err
		}
		locker := redislock.New(client, redislock.Config{Namespace: l.Namespace, Margin: margin, Logger: log})
		return locker, func() { locker.Close(); _ = client.Close() }, nil
	}
	c := l.Locks.Store()
	c.Namespace, c.Margin, c.Logger = l.Namespace, margin, log
	return lockstore.Drivers[l.Locks.Driver](c)
}

// Guards are the lockers for jobs with a guard; end closes them.
func (l *Loaded) Guards(log *slog.Logger, newClient func() (redis.UniversalClient, error)) (all map[string]*locking.Locker, end func(), err error) {
	if !slices.ContainsFunc(l.JobList, func(j jobs.Job) bool { return j.Guard != "" }) {
		return nil, func() {}, nil
	}
	locker, end, err := l.OpenLocks(log, l.Node.MaxSkew, newClient)
	switch {
	case errors.Is(err, locking.ErrUnreachable):
		return nil, nil, fmt.Errorf("%s: %s gives no guards: %w", l.LocksFrom(), l.Locks.Driver, err)
	case err != nil:
		return nil, nil, l.Refused(err)
	}
	return map[string]*locking.Locker{l.Locks.Driver: locker}, end, nil
}
