//go:build unix

package redislock_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// wrapped is a client inside a user's own type.
type wrapped struct{ *redis.Client }

// oddNames are names of locks that look like keys, or like the part of a key that chooses its slot.
var oddNames = []string{"*", "a", "a}:token", "b}c{d", "{x}"}

func TestList(t *testing.T) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		const namespace = "n*[s]"
		d := redislock.NewDriver(c, redislock.Config{Namespace: namespace})
		defer d.Close()
		other := redislock.NewDriver(c, redislock.Config{Namespace: "nx[s]"})
		acquire := func(d *redislock.Driver, name string) error {
			_, err := d.Acquire(t.Context(), locking.Request{Name: name, Owner: "o", TTL: time.Minute, Holder: "h"})
			return err
		}
		for i, name := range oddNames {
			if err := acquire(d, name); err != nil {
				t.Fatal(err)
			}
			if i%2 == 0 { // a waiter in the queue
				_, _ = d.Acquire(t.Context(), locking.Request{Name: name, Owner: "p", TTL: time.Minute, Queue: true})
			}
		}
		if err := errors.Join(acquire(other, "free"), acquire(other, "theirs")); err != nil {
			t.Fatal(err)
		}
		c.Set(t.Context(), "{"+namespace+":lock:foreign}", "1:x", 0) // a foreign key hides none of our locks
		c.Set(t.Context(), "{"+namespace+":lock:foreign}:line", "x", 0)
		want := slices.Insert(slices.Clone(oddNames), 4, "foreign")
		for limit, whole := range map[int]bool{100: true, 6: true, 5: false, 0: true} {
			locks, more, err := d.List(t.Context(), "", limit)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range locks {
				got = append(got, o.Name)
				i := slices.Index(oddNames, o.Name)
				if i >= 0 && (o.Owner != "o" || o.Holder != "h" || o.Token == 0 || o.Left <= 0 || o.Waiters != (i+1)%2) {
					t.Errorf("lock %q: %+v", o.Name, o)
				}
			}
			if !slices.Equal(got, want[:min(cmp.Or(limit, len(want)), len(want))]) || more == whole {
				t.Errorf("at most %d: got %q, more %t; want %q", limit, got, more, want)
			}
		}
		locks, more, err := redislock.NewDriver(wrapped{c}, redislock.Config{Namespace: namespace}).List(t.Context(), "", 100)
		if len(locks) != len(want) || more || err != nil {
			t.Errorf("over a client in another type: %d locks, more %t, %v", len(locks), more, err)
		}
	})
}

// manyLocks has n locks taken.
func manyLocks(t *testing.T, d *redislock.Driver, n int) {
	t.Helper()
	for i := range n {
		if _, err := d.Acquire(t.Context(), locking.Request{Name: fmt.Sprint(lockName, i), Owner: "o", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestListIsInterrupted: List makes up no holders for the locks that it did not read.
func TestListIsInterrupted(t *testing.T) {
	_, c := redistest.StartEmbedded(t)
	d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
	manyLocks(t, d, 5)
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	c.AddHook(before(func() {
		if asked++; asked == 3 {
			cancel()
		}
	}))
	locks, _, err := d.List(ctx, "", 10)
	if len(locks) == 0 || !errors.Is(err, context.Canceled) || slices.ContainsFunc(locks, func(o locking.Ownership) bool { return o.Owner != "o" }) {
		t.Errorf("%+v, %v; want those that were read and the end of the context", locks, err)
	}
}

// TestListOfManySlotsOnTheirWay: from a server that serves none of many slots, List does not
// request each of their locks.
func TestListOfManySlotsOnTheirWay(t *testing.T) {
	e, c := redistest.StartEmbedded(t)
	d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
	manyLocks(t, d, 50)
	asked := 0
	e.SetHook(func(p *server.Peer, cmd string, _ ...string) bool {
		if strings.HasPrefix(cmd, "EVAL") {
			asked++
			p.WriteError("CLUSTERDOWN Hash slot not served")
			return true
		}
		return false
	})
	locks, _, err := d.List(t.Context(), "", 0)
	if len(locks) != 0 || !errors.Is(err, locking.ErrUnreachable) || asked < 2 || asked > 20 {
		t.Errorf("%d locks, %v; asked %d times, want a few", len(locks), err, asked)
	}
}
