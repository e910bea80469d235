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
	"github.com/escapement/escapement/locking/redistest"
)

// mostInLine is how many a line has room for.
const mostInLine = 1000

// inPlace stands in line for lock a and wants that place; 0: the line is full.
func inPlace(t *testing.T, d *redislock.Driver, owner string, want int) {
	t.Helper()
	r := request(owner, time.Minute)
	r.Queue = true
	_, err := d.Acquire(t.Context(), r)
	var held *locking.HeldError
	if !errors.As(err, &held) || held.Owner != "holder" || held.Place != want {
		t.Fatalf("%s: %v; want held by the holder, and place %d", owner, err, want)
	}
}

// lineFor has lock a held, on each kind of server.
func lineFor(t *testing.T, f func(t *testing.T, c *redis.Client, d *redislock.Driver)) {
	onBoth(t, func(t *testing.T, c *redis.Client) {
		d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
		defer d.Close()
		if _, err := d.Acquire(t.Context(), request("holder", time.Minute)); err != nil {
			t.Fatal(err)
		}
		f(t, c, d)
	})
}

// TestFullLine: a waiter that finds the line full is told that the lock is held, has no place, and gets one when somebody leaves.
func TestFullLine(t *testing.T) {
	lineFor(t, func(t *testing.T, _ *redis.Client, d *redislock.Driver) {
		for i := range mostInLine {
			inPlace(t, d, fmt.Sprint(i), i+1)
		}
		inPlace(t, d, "late", 0)
		if err := d.Release(t.Context(), "a", "7"); !errors.Is(err, locking.ErrLost) {
			t.Errorf("leave the line: %v", err)
		}
		inPlace(t, d, "late", mostInLine)
	})
}

// TestDeadInLine: a process that has died in line is no waiter, and costs those behind it no place; a line full of them has room.
func TestDeadInLine(t *testing.T) {
	lineFor(t, func(t *testing.T, c *redis.Client, d *redislock.Driver) {
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
			inPlace(t, d, owner, i+1)
		}
		dies("1", "2", "4", "6")
		waiters(2)
		inPlace(t, d, "5", 4) // the dead before 3 are left to it
		inPlace(t, d, "3", 1)
		inPlace(t, d, "5", 2)
		inPlace(t, d, "7", 3)
		waiters(3)
		if n := c.ZCard(t.Context(), keys[2]).Val(); n != 3 {
			t.Errorf("%d stand in line, and three live", n)
		}
		for i := range mostInLine - 3 {
			inPlace(t, d, fmt.Sprint("late ", i), i+4)
		}
		inPlace(t, d, "8", 0)
		dies(fmt.Sprint("late ", mostInLine-5), fmt.Sprint("late ", mostInLine-4))
		inPlace(t, d, "8", mostInLine-1)
	})
}

// TestLineOutlivesItsState: where the state is lost, which knows of the line, waiters are not forgotten, nor overtaken.
func TestLineOutlivesItsState(t *testing.T) {
	inABubble(t, func(t *testing.T, e *redistest.Embedded, d *redislock.Driver, _ *locking.Locker) {
		keys := lockKeys("a")
		if _, err := d.Acquire(t.Context(), request("holder", 10*time.Second)); err != nil {
			t.Fatal(err)
		}
		inPlace(t, d, "first", 1)
		inPlace(t, d, "second", 2)
		held := func(when, want string) {
			t.Helper()
			if o, err := d.Owner(t.Context(), "a"); err != nil || o.Owner != want {
				t.Errorf("%s %+v, %v; want %s to have it", when, o, err, want)
			}
		}
		e.Mini().Del(keys[1])
		if err := d.Release(t.Context(), "a", "holder"); err != nil {
			t.Fatal(err)
		}
		held("after the release", "first")
		e.Mini().Del(keys[0]) // as if it had lapsed
		e.Mini().Del(keys[1])
		if _, err := d.Acquire(t.Context(), request("passer-by", 10*time.Second)); !errors.Is(err, locking.ErrHeld) {
			t.Errorf("a passer-by, while one stands in line: %v; want held", err)
		}
		held("after a passer-by asked", "second")
	})
}
