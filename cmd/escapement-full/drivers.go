package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net/url"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/escapement/escapement/cmd/internal/cli"
	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/etcdlock"
	"github.com/escapement/escapement/locking/pglock"
	"github.com/escapement/escapement/locking/zklock"
)

// zookeeper takes the servers of an ensemble, HOST:PORT.
func zookeeper(c cli.LockConfig) (*locking.Locker, func(), error) {
	for i, server := range c.Servers {
		if host, port, some := strings.Cut(server, ":"); !some || host == "" || port == "" || strings.ContainsAny(server, "/@") {
			return nil, nil, fmt.Errorf("number %d is not HOST:PORT, such as zk1:2181", i+1)
		}
	}
	client := zklock.NewClient(c.Servers, zklock.ClientConfig{Logger: c.Logger})
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

// etcd takes the members of a cluster as URLs, of which one may have the user and the password.
func etcd(c cli.LockConfig) (*locking.Locker, func(), error) {
	var cfg etcdlock.ClientConfig
	for i, server := range c.Servers {
		u, err := url.Parse(server)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, nil, fmt.Errorf("number %d is not the URL of a member, such as http://etcd1:2379 or https://USER:PASSWORD@etcd1:2379", i+1)
		}
		if password, some := u.User.Password(); some {
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
func postgres(c cli.LockConfig) (*locking.Locker, func(), error) {
	list := strings.Join(c.Servers, ",") // of a URL with several hosts, the commas have parted a list
	cfg, err := pgxpool.ParseConfig(list)
	if err != nil || strings.Count(list, "://") != 1 {
		return nil, nil, errors.New("is not the URL of one database, such as postgres://USER:PASSWORD@HOST:5432/DB, or HOST1,HOST2 in place of HOST") // pgx' error may have a part of the password
	}
	cfg.MinConns = 0
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		return nil, nil, err
	}
	locker := pglock.New(pool, pglock.Config{Namespace: tables(c.Namespace), Margin: c.Margin, Logger: c.Logger, Listen: cfg.ConnConfig.Copy(), Migrate: true})
	return locker, func() { locker.Close(); pool.Close() }, nil
}

// tablesPattern is that of pglock.Config.Namespace.
var tablesPattern = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,23}$`)

// tables begins the names of a namespace's tables. A namespace that cannot is told apart from others like it by a number.
func tables(namespace string) string {
	if namespace == "" || tablesPattern.MatchString(namespace) {
		return namespace
	}
	plain := regexp.MustCompile(`[^a-z0-9]`).ReplaceAllString(strings.ToLower(namespace), "_")
	return fmt.Sprintf("_%.14s_%08x", plain, crc32.ChecksumIEEE([]byte(namespace)))
}
