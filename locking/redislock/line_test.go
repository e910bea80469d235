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
