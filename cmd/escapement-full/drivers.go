package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/escapement/escapement/cmd/internal/lockstore"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/etcdlock"
	"github.com/escapement/escapement/locking/pglock"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/zklock"
)

// zookeeper takes an ensemble's servers, HOST:PORT. With a user, the nodes of locks belong to that
// user alone.
func zookeeper(c lockstore.Config) (*locking.Locker, func(), error) {
	for i, server := range c.Servers {
		if host, port, some := strings.Cut(server, ":"); !some || host == "" || port == "" || strings.ContainsAny(server, "/@") {
			return nil, nil, fmt.Errorf("server %d is not HOST:PORT, such as zk1:2181", i+1)
		}
	}
	cfg := zklock.ClientConfig{Logger: c.Logger}
	if c.Password != "" {
		if c.User == "" || strings.Contains(c.User, ":") {
			return nil, nil, errors.New("want a user of the scheme digest, without a colon: set locks.user")
		}
		cfg.Auth = []zklock.Auth{{Scheme: "digest", Credentials: []byte(c.User + ":" + c.Password)}}
	}
	if c.TLS != (redisconn.TLS{}) {
		security, err := c.TLS.Config()
		if err != nil {
			return nil, nil, err
		}
		cfg.Dial = func(network, address string, timeout time.Duration) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			return (&tls.Dialer{Config: security}).DialContext(ctx, network, address)
		}
	}
	client := zklock.NewClient(c.Servers, cfg)
	locker := zklock.New(client, zklock.Config{Root: root(c.Namespace), Margin: c.Margin, Logger: c.Logger})
	return locker, func() { locker.Close(); client.Close() }, nil
}

// root is the node of a namespace's locks.
func root(namespace string) string {
	if namespace == "" {
		return ""
	}
	return "/" + namespace + "/locks"
}

// etcd takes the members of a cluster as URLs. One of them may have the user and the password.
func etcd(c lockstore.Config) (*locking.Locker, func(), error) {
	cfg := etcdlock.ClientConfig{Username: c.User, Password: c.Password}
	if c.Password != "" && c.User == "" {
		return nil, nil, errors.New("want a user with the password: set locks.user")
	}
	if c.TLS != (redisconn.TLS{}) {
		var err error
		if cfg.TLS, err = c.TLS.Config(); err != nil {
			return nil, nil, err
		}
	}
	for i, server := range c.Servers {
		u, err := url.Parse(server)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, nil, fmt.Errorf("server %d is not the URL of a member, such as http://etcd1:2379 or https://USER:PASSWORD@etcd1:2379", i+1)
		}
		if cfg.TLS != nil && u.Scheme != "https" {
			return nil, nil, fmt.Errorf("server %d begins with http, which has no TLS, and locks.tls is set; write https", i+1)
		}
		password, some := u.User.Password()
		if some && c.Password != "" {
			return nil, nil, fmt.Errorf("server %d has a password, and locks.password is set too; keep one of them", i+1)
		}
		if some {
			cfg.Username, cfg.Password = u.User.Username(), password
		}
		cfg.Endpoints = append(cfg.Endpoints, u.Scheme+"://"+u.Host)
	}
	if c.Check { // Connect logs in with a password
		return nil, func() {}, nil
	}
	client, err := etcdlock.Connect(cfg)
	if err != nil {
		return nil, nil, err
	}
	locker := etcdlock.New(client, etcdlock.Config{Prefix: c.Namespace, Margin: c.Margin, Logger: c.Logger})
	return locker, func() { locker.Close(); _ = client.Close() }, nil
}

// postgres takes one URL, and makes the tables when they are not there.
func postgres(c lockstore.Config) (*locking.Locker, func(), error) {
	list := strings.Join(c.Servers, ",") // of a URL with several hosts, the commas have parted a list
	cfg, err := pgxpool.ParseConfig(list)
	if err != nil || strings.Count(list, "://") != 1 {
		return nil, nil, errors.New("is not the URL of one database, such as postgres://USER:PASSWORD@HOST:5432/DB, or HOST1,HOST2 in place of HOST") // pgx' error may have a part of the password
	}
	if err := secure(cfg.ConnConfig, c, list); err != nil {
		return nil, nil, err
	}
	cfg.MinConns = 0
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return nil, nil, err
	}
	locker := pglock.New(pool, pglock.Config{Schema: c.Schema, Namespace: tables(c.Namespace), Margin: c.Margin, Logger: c.Logger, Listen: cfg.ConnConfig.Copy(), Migrate: true})
	return locker, func() { locker.Close(); pool.Close() }, nil
}

// secure adds the user, the password and TLS of c to the URL's settings.
func secure(cfg *pgx.ConnConfig, c lockstore.Config, text string) error {
	u, err := url.Parse(text)
	if err != nil {
		return errors.New("cannot be read as a URL") // pgx has read it
	}
	if c.Password != "" {
		if _, some := u.User.Password(); some || u.Query().Has("password") {
			return errors.New("has a password, and locks.password is set too; keep one of them")
		}
		cfg.Password = c.Password
	}
	if c.User != "" {
		if u.User.Username() != "" || u.Query().Has("user") {
			return errors.New("has a user, and locks.user is set too; keep one of them")
		}
		cfg.User = c.User
	}
	if c.TLS == (redisconn.TLS{}) {
		return nil
	}
	for name := range u.Query() {
		if strings.HasPrefix(name, "ssl") {
			return fmt.Errorf("has %s, and locks.tls is set too; keep one of them", name)
		}
	}
	security, err := c.TLS.Config()
	if err != nil {
		return err
	}
	of := func(host string) *tls.Config {
		own := security.Clone()
		own.ServerName = cmp.Or(own.ServerName, host)
		return own
	}
	cfg.TLSConfig = of(cfg.Host)
	seen := map[pgconn.FallbackConfig]bool{{Host: cfg.Host, Port: cfg.Port}: true}
	var others []*pgconn.FallbackConfig // with sslmode=prefer, the default, each host is there once more, without TLS
	for _, f := range cfg.Fallbacks {
		at := pgconn.FallbackConfig{Host: f.Host, Port: f.Port}
		if !seen[at] {
			others = append(others, &pgconn.FallbackConfig{Host: f.Host, Port: f.Port, TLSConfig: of(f.Host)})
		}
		seen[at] = true
	}
	cfg.Fallbacks = others
	return nil
}

// tablesPattern is the pattern of pglock.Config.Namespace.
var tablesPattern = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,23}$`)

// tables returns the prefix of a namespace's tables. A namespace that is no valid prefix gets a
// number, so that similar namespaces have different tables.
func tables(namespace string) string {
	if namespace == "" || tablesPattern.MatchString(namespace) {
		return namespace
	}
	plain := regexp.MustCompile(`[^a-z0-9]`).ReplaceAllString(strings.ToLower(namespace), "_")
	return fmt.Sprintf("_%.14s_%08x", plain, crc32.ChecksumIEEE([]byte(namespace)))
}
