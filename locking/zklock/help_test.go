//go:build unix

package zklock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

type silent struct{}

func (silent) Printf(string, ...any) {}

// raw returns a client of the library, for calls that the driver does not make.
func raw(tb testing.TB, servers []string) *zk.Conn {
	tb.Helper()
	c, _, err := zk.Connect(servers, 10*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Close)
	return c
}

// deleteAll deletes a node with all below.
func deleteAll(tb testing.TB, servers []string, path string) {
	tb.Helper()
	c := raw(tb, servers)
	var walk func(path string)
	walk = func(path string) {
		children, _, err := c.Children(path)
		if errors.Is(err, zk.ErrNoNode) {
			return
		}
		if err != nil {
			tb.Fatal(err)
		}
		for _, name := range children {
			walk(path + "/" + name)
		}
		if err := c.Delete(path, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
			tb.Fatal(err)
		}
	}
	walk(path)
}

// await calls yes again and again until it returns true. Its bound ends a standstill, and judges no
// time: three servers elect a leader again and again on a machine that is busy.
func await(tb testing.TB, what string, yes func() bool) {
	const standstill = 3 * time.Minute
	tb.Helper()
	for start := time.Now(); !yes(); <-time.After(5 * time.Millisecond) {
		if time.Since(start) > standstill {
			tb.Fatalf("not within %s: %s", standstill, what)
		}
	}
}
