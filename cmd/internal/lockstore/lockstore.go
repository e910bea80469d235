// Package lockstore makes lockers of the stores of locks.
package lockstore

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redlock"
)

// Margin is how long before Redis gives a lock away its holder's lease ends.
const Margin = time.Second

// Config is the settings from which a Driver makes a locker.
type Config struct {
	Servers   []string // as the driver spells them
	User      string   // for all servers, with Password; "": user and password in Servers
	Password  string
	Schema    string // of tables
	TLS       redisconn.TLS
	Namespace string
	Margin    time.Duration // see locking.Config
	Logger    *slog.Logger
	Check     bool // only judge the servers, without a connection: no locker is needed
}

// Driver makes a locker. The second function ends the locker and its connections. The error names
// the fault of the servers, and holds no password; it wraps locking.ErrUnreachable when the servers
// do not answer.
type Driver func(c Config) (*locking.Locker, func(), error)

// The drivers of every program, and the driver whose tables are in a schema.
const (
	Redis   = "redis"
	Redlock = "redlock"

	Postgres = "postgres"
)

// Drivers are the drivers of every program. Main adds further ones.
var Drivers = map[string]Driver{Redis: oneRedis, Redlock: severalRedis}

// oneRedis is for locks in another Redis than the configuration's.
func oneRedis(c Config) (*locking.Locker, func(), error) {
	if len(c.Servers) != 1 {
		return nil, nil, fmt.Errorf("are %d, and redis has one URL; of independent servers a majority has the lock with the driver redlock", len(c.Servers))
	}
	clients, end, err := c.RedisClients()
	if err != nil {
		return nil, nil, err
	}
	locker := redislock.New(clients[0], redislock.Config{Namespace: c.Namespace, Margin: c.Margin, Logger: c.Logger})
	return locker, func() { locker.Close(); end() }, nil
}

// severalRedis makes a locker whose locks need a majority of independent servers.
func severalRedis(c Config) (*locking.Locker, func(), error) {
	clients, end, err := c.RedisClients()
	if err != nil {
		return nil, nil, err
	}
	locker, err := redlock.New(clients, redlock.Config{Namespace: c.Namespace, Margin: c.Margin, Logger: c.Logger})
	if err != nil {
		end()
		return nil, nil, err
	}
	return locker, func() { locker.Close(); end() }, nil
}

// RedisClients makes a client for each server.
func (c Config) RedisClients() (clients []redis.UniversalClient, end func(), err error) {
	end = func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}
	for i, url := range c.Servers {
		a, err := redisconn.Parse(strings.TrimSpace(url))
		if err == nil {
			err = a.SetTLS(c.TLS)
		}
		if err == nil && c.Password != "" && !a.SetUser(c.User, c.Password) {
			err = errors.New("has a user or a password, and locks.password is set too; keep one of them")
		}
		if err != nil {
			end()
			return nil, nil, fmt.Errorf("the URL of server %d %w", i+1, err)
		}
		clients = append(clients, a.Client())
	}
	return clients, end, nil
}
