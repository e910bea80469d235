package redislock

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
)

// TestFullLine: a line has mostInLine places. Who finds it full is told that the lock is held, has no place, and gets one when somebody leaves.
func TestFullLine(t *testing.T) {
	server, embedded := realAndEmbedded(t)
	for _, c := range []*redis.Client{server, embedded} {
		d := NewDriver(c, Config{})
		ask := func(owner string) int {
			t.Helper()
			_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: owner, TTL: time.Minute, Queue: true})
			var held *locking.HeldError
			if !errors.As(err, &held) || held.Owner != "holder" {
				t.Fatalf("%s: %v", owner, err)
			}
			return held.Place
		}
		if _, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "holder", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		for i := range mostInLine {
			if place := ask(fmt.Sprint(i)); place != i+1 {
				t.Fatalf("number %d has place %d", i+1, place)
			}
		}
		if place := ask("late"); place != 0 {
			t.Errorf("place %d in a full line", place)
		}
		if err := d.Release(t.Context(), "a", "7"); !errors.Is(err, locking.ErrLost) {
			t.Errorf("leave the line: %v", err)
		}
		if place := ask("late"); place != mostInLine {
			t.Errorf("place %d after one has left; want the last", place)
		}
		d.HangUp()
	}
}

// TestDeadInLine: who has died in line is no waiter, and costs those behind it no place; a line full of them has room.
func TestDeadInLine(t *testing.T) {
	server, embedded := realAndEmbedded(t)
	for _, c := range []*redis.Client{server, embedded} {
		d := NewDriver(c, Config{})
		ask := func(owner string, want int) {
			t.Helper()
			_, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: owner, TTL: time.Minute, Queue: true})
			var held *locking.HeldError
			if !errors.As(err, &held) || held.Place != want {
				t.Fatalf("%s: %v; want place %d", owner, err, want)
			}
		}
		waiters := func(want int) {
			t.Helper()
			if o, err := d.Owner(t.Context(), "a"); err != nil || o.Waiters != want {
				t.Fatalf("%d waiters, %v; want %d", o.Waiters, err, want)
			}
		}
		dies := func(owners ...string) {
			t.Helper()
			for _, owner := range owners {
				if err := c.HSet(t.Context(), lockKeys(DefaultNamespace, "a")[3], owner, "1 Pnowhere").Err(); err != nil {
					t.Fatal(err)
				}
			}
		}
		if _, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "holder", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		for i, owner := range []string{"1", "2", "3", "4", "5", "6"} {
			ask(owner, i+1)
		}
		dies("1", "2", "4", "6")
		waiters(2)
		ask("5", 4) // the dead before 3 are left to it
		ask("3", 1)
		ask("5", 2)
		ask("7", 3)
		waiters(3)
		if n := c.ZCard(t.Context(), lockKeys(DefaultNamespace, "a")[2]).Val(); n != 3 {
			t.Errorf("%d stand in line, and three live", n)
		}
		for i := range mostInLine - 3 {
			ask(fmt.Sprint("late ", i), i+4)
		}
		ask("8", 0)
		dies(fmt.Sprint("late ", mostInLine-5), fmt.Sprint("late ", mostInLine-4))
		ask("8", mostInLine-1)
		d.HangUp()
	}
}
