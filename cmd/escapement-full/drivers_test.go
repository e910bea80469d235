package main

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/cmd/internal/lockstore"
)

// TestCheckSendsNothing: the servers of a configuration are judged without a connection, also where
// one begins with a login.
func TestCheckSendsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		driver  lockstore.Driver
		servers string
	}{
		"zookeeper": {zookeeper, "127.0.0.1:1"},
		"etcd":      {etcd, "http://user:secret@127.0.0.1:1"},
		"postgres":  {postgres, "postgres://user:secret@127.0.0.1:1/db"},
		"a standby": {postgres, "postgres://user:secret@127.0.0.1:1,127.0.0.1:2/db?target_session_attrs=read-write"},
	} {
		began := time.Now()
		_, end, err := c.driver(lockstore.Config{Servers: strings.Split(c.servers, ","), Margin: time.Second, Logger: slog.New(slog.DiscardHandler), Check: true})
		if err != nil || time.Since(began) > time.Second {
			t.Errorf("%s: after %s: %v", name, time.Since(began), err)
		}
		if err == nil {
			end()
		}
	}
}

// TestServersRefused: a text that names no server of a store is refused, and the error hides the
// password.
func TestServersRefused(t *testing.T) {
	for _, c := range []struct {
		driver  lockstore.Driver
		servers string
	}{
		{zookeeper, "http://user:secret@zk1:2181"},
		{etcd, "etcd1:2379,secret"},
		{postgres, "postgres://user:secret@[/db"},
		{postgres, "postgres://user:secret@a/db,postgres://user:secret@b/db"},
		{postgres, "host=pg user=user password=secret"},
	} {
		_, _, err := c.driver(lockstore.Config{Servers: strings.Split(c.servers, ","), Logger: slog.New(slog.DiscardHandler), Check: true})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", c.servers, err)
		}
	}
}

// TestTables: each namespace has tables, and no two have the same.
func TestTables(t *testing.T) {
	seen := map[string]string{}
	for _, namespace := range []string{"", "escapement", "shop_prod", "shop-prod", "shop.prod", "Shop-prod", strings.Repeat("n", 24), strings.Repeat("n", 25), strings.Repeat("n", 64), "1st"} {
		name := tables(namespace)
		if name != "" && !tablesPattern.MatchString(name) {
			t.Errorf("%q: %q", namespace, name)
		}
		if before, same := seen[name]; same {
			t.Errorf("%q and %q: %q", before, namespace, name)
		}
		seen[name] = namespace
	}
}
