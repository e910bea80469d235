//go:build unix

package zklock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/zklock"
)

// hookConn calls before, once, when a request that contains match is about to be sent.
type hookConn struct {
	net.Conn
	match  string
	before func()
}

func (c hookConn) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(c.match)) {
		c.before()
	}
	return c.Conn.Write(p)
}

// TestLockNodeReplaced holds back the transaction of an acquire while ZooKeeper removes the lock's empty container, and another
// owner creates it anew and takes the lock. The new node has the version that the first owner has read.
func TestLockNodeReplaced(t *testing.T) {
	for _, lost := range []bool{false, true} {
		t.Run(fmt.Sprint("reply lost: ", lost), func(t *testing.T) {
			d2, _, root := driver(t)
			server := theServer(t).addr()
			mustAcquire(t, d2, request("before", 20*time.Second))
			if err := d2.Release(t.Context(), "a", "before"); err != nil {
				t.Fatal(err)
			}
			conn, n := raw(t, []string{server}), new(network)
			replaced := sync.OnceFunc(func() {
				if err := conn.Delete(root+"/lock-a", -1); err != nil { // as ZooKeeper does
					t.Error(err)
				}
				mustAcquire(t, d2, request("second", 20*time.Second))
				if lost {
					n.LoseReplies(1, "/held-first")
				}
			})
			c := zklock.NewClient([]string{server}, zklock.ClientConfig{Dial: func(network, address string, timeout time.Duration) (net.Conn, error) {
				dialed, err := n.dial(network, address, timeout)
				return hookConn{dialed, "/held-first", replaced}, err
			}})
			t.Cleanup(c.Close)
			d := zklock.NewDriver(c, zklock.Config{Root: root})

			acquire := func() (locking.Grant, error) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				return d.Acquire(ctx, request("first", 20*time.Second))
			}
			g, err := acquire()
			if lost && errors.Is(err, locking.ErrUnreachable) {
				g, err = acquire()
			}
			var held *locking.HeldError
			if !errors.As(err, &held) || held.Owner != "second" {
				t.Fatalf("granted %+v, %v; want held by second", g, err)
			}
			if err := d2.Release(t.Context(), "a", "second"); err != nil {
				t.Error(err)
			}
			if o, err := d.Owner(t.Context(), "a"); err != nil || o.Held() {
				t.Errorf("%+v, %v; want nobody", o, err)
			}
		})
	}
}
