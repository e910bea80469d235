//go:build unix

package redislock_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
)

// maxQueue is the places of a queue.
const maxQueue = 1000

// joins requests lock a and wants that place in its queue; 0: the queue is full.
func joins(t *testing.T, d *redislock.Driver, owner string, want int) {
	t.Helper()
	r := request(owner, time.Minute)
	r.Queue = true
	_, err := d.Acquire(t.Context(), r)
	var held *locking.HeldError
	if !errors.As(err, &held) || held.Owner != "holder" || held.Place != want {
		t.Fatalf("%s: %v; want held by the holder, and place %d", owner, err, want)
	}
}

// queueFor calls f with lock a held, on each kind of server.
func queueFor(t *testing.T, f func(t *testing.T, c *redis.Client, d *redislock.Driver)) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
		defer d.Close()
		if _, err := d.Acquire(t.Context(), request("holder", time.Minute)); err != nil {
			t.Fatal(err)
		}
		f(t, c, d)
	})
}

// TestFullQueue: a waiter for whom the queue is full gets no place, and gets one when another waiter leaves.
func TestFullQueue(t *testing.T) {
	queueFor(t, func(t *testing.T, _ *redis.Client, d *redislock.Driver) {
		for i := range maxQueue {
			joins(t, d, fmt.Sprint(i), i+1)
		}
		joins(t, d, "late", 0)
		if err := d.Release(t.Context(), "a", "7"); !errors.Is(err, locking.ErrLost) {
			t.Errorf("leave the queue: %v", err)
		}
		joins(t, d, "late", maxQueue)
	})
}

// TestDeadWaiters: a dead process in the queue does not count as a waiter, and takes no place.
func TestDeadWaiters(t *testing.T) {
	queueFor(t, func(t *testing.T, c *redis.Client, d *redislock.Driver) {
		keys := lockKeys("a")
		waiters := func(want int) {
			t.Helper()
			if o, err := d.Owner(t.Context(), "a"); err != nil || o.Waiters != want {
				t.Fatalf("%d waiters, %v; want %d", o.Waiters, err, want)
			}
		}
		dies := func(owners ...string) {
			t.Helper()
			for _, owner := range owners {
				if err := c.HSet(t.Context(), keys[3], owner, "1 Pnowhere").Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		for i, owner := range []string{"1", "2", "3", "4", "5", "6"} {
			joins(t, d, owner, i+1)
		}
		dies("1", "2", "4", "6")
		waiters(2)
		joins(t, d, "5", 4) // the dead in front of 3 remain until 3 polls
		joins(t, d, "3", 1)
		joins(t, d, "5", 2)
		joins(t, d, "7", 3)
		waiters(3)
		if n := c.ZCard(t.Context(), keys[2]).Val(); n != 3 {
			t.Errorf("%d owners in the queue, and three are alive", n)
		}
		for i := range maxQueue - 3 {
			joins(t, d, fmt.Sprint("late ", i), i+4)
		}
		joins(t, d, "8", 0)
		dies(fmt.Sprint("late ", maxQueue-5), fmt.Sprint("late ", maxQueue-4))
		joins(t, d, "8", maxQueue-1)
	})
}
