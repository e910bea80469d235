package ledger

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
)

func TestRelayIsRefused(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.create(t, "other")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		e := r.events(t)[0]
		for _, job := range []string{"nobody", "other", "a"} {
			if got := must(r.led.Relay(t.Context(), e, job)); got != RelayStranger {
				t.Errorf("%s: %s", job, got)
			}
		}
		stranger := e
		stranger.Upstream = "x"
		if got := must(r.led.Relay(t.Context(), stranger, "b")); got != RelayStranger {
			t.Errorf("of another job: %s", got)
		}
		pipe := r.client.Pipeline()
		for i := range pendingMax {
			pipe.Do(t.Context(), "ZADD", r.led.keys[0].pending, noon, i)
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := must(r.led.Relay(t.Context(), e, "b")); got != RelayFull {
			t.Errorf("too many pending: %s", got)
		}
		r.client.ZRemRangeByRank(t.Context(), r.led.keys[0].pending, 0, 0)
		if got := must(r.led.Relay(t.Context(), e, "b")); got != RelayDone {
			t.Errorf("one less: %s", got)
		}
	})
}

// Nobody empties the outbox: the job that is followed waits, so that nothing is lost and nothing grows.
func TestFullOutbox(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b", "c")
		r.create(t, "free")
		r.pass(t, time.Minute)
		r.want(t, Granted, tickClaim("a", "r1", 1))
		r.settle(t, Settled, "a", "r1", jobs.OutcomeFailed)
		e := r.events(t)[0]
		pipe := r.client.Pipeline()
		for i := range 10_000 {
			pipe.Do(t.Context(), "ZADD", r.led.keys[0].outbox, noon, fmt.Sprint("x", i))
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		if a := r.want(t, Held, tickClaim("a", "r2", 2)); a.Detail != "full outbox" {
			t.Errorf("%+v", a)
		}
		r.want(t, Held, passing("a", "r", 0, late(2, 3)))
		r.want(t, Granted, tickClaim("free", "r3", 1)) // nobody follows it
		if got := must(r.led.Relay(t.Context(), e, "b")); got != RelayFull {
			t.Errorf("a follower that is followed: %s", got)
		}
		r.client.ZRemRangeByRank(t.Context(), r.led.keys[0].outbox, 0, 1)
		if got := must(r.led.Relay(t.Context(), e, "b")); got != RelayDone {
			t.Errorf("one less: %s", got)
		}
	})
}

func TestFollowers(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		for range 2 {
			for i := range 256 {
				if err := r.led.Follow(t.Context(), "a", fmt.Sprint("f", i)); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := r.led.Follow(t.Context(), "a", "more"); !errors.Is(err, ErrRefused) {
			t.Errorf("too many: %v", err)
		}
		for i := range 256 {
			if err := r.led.Unfollow(t.Context(), "a", fmt.Sprint("f", i)); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				if err := r.led.Follow(t.Context(), "a", "f255"); err != nil {
					t.Errorf("again: %v", err)
				}
			}
		}
		if left := r.client.HGetAll(t.Context(), r.led.keys[0].followers).Val(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// Nobody alive holds the follower: a tick that succeeded is missed, instead of waiting for ever; it has its
// answer then, whoever is there later.
func TestFollowerThatNobodyHolds(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b", "c")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		e := r.events(t)[0]
		e.Unheld = true
		for _, unheld := range []bool{true, true, false} {
			if e.Unheld = unheld; must(r.led.Relay(t.Context(), e, "b")) != RelayDone {
				t.Fatal("not told")
			}
		}
		r.relayAll(t)
		if l := r.open(t, "b"); l != nil {
			t.Errorf("in flight: %+v", l)
		}
		r.tale(t, "b", "missed 1-1 x1 late")
		r.tale(t, "c", "skipped 1-1 x1 upstream missed")
		r.sound(t)
	})
}
