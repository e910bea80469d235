package ledger

import (
	"errors"
	"fmt"
	"maps"
	"strings"
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
			if got := must(r.led.Relay(t.Context(), e, job)); got != RelayUnrelated {
				t.Errorf("%s: %s", job, got)
			}
		}
		stranger := e
		stranger.Upstream = "x"
		if got := must(r.led.Relay(t.Context(), stranger, "b")); got != RelayUnrelated {
			t.Errorf("of another job: %s", got)
		}
		r.client.ZAdd(t.Context(), r.led.keys[0].pending, members(pendingMax)...)
		if got := must(r.led.Relay(t.Context(), e, "b")); got != RelayFull {
			t.Errorf("too many pending: %s", got)
		}
		r.client.ZRemRangeByRank(t.Context(), r.led.keys[0].pending, 0, 0)
		if got := must(r.led.Relay(t.Context(), e, "b")); got != RelayDone {
			t.Errorf("one less: %s", got)
		}
	})
}

// The outbox is full and stays so: the upstream waits, so that nothing is lost and nothing grows.
func TestFullOutbox(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b", "c")
		r.create(t, "free")
		r.pass(t, time.Minute)
		r.complete(t, jobs.OutcomeFailed, tickClaim("a", "r1", 1))
		e := r.events(t)[0]
		r.client.ZAdd(t.Context(), r.led.keys[0].outbox, members(10_000)...)
		if a := r.want(t, JobBusy, tickClaim("a", "r2", 2)); a.Detail != "full outbox" {
			t.Errorf("%+v", a)
		}
		r.want(t, JobBusy, passing("a", "r", 0, late(2, 3)))
		r.want(t, Granted, tickClaim("free", "r3", 1)) // it has no followers
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
		follow := func(job string, want error) {
			t.Helper()
			if err := r.led.Follow(t.Context(), "a", job); !errors.Is(err, want) {
				t.Fatalf("%s: %v, want %v", job, err, want)
			}
		}
		for i := range 256 {
			follow(fmt.Sprint("f", i), nil)
		}
		follow("f0", nil) // again
		follow("more", ErrRefused)
		for i := range 256 {
			if err := r.led.Unfollow(t.Context(), "a", fmt.Sprint("f", i)); err != nil {
				t.Fatal(err)
			}
		}
		if left := r.client.HGetAll(t.Context(), r.led.keys[0].followers).Val(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// Events that wait for a follower fill pages of the outbox; later events are read with the next
// scan.
func TestNewEventsDoNotWaitForOld(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		const old = 5 * eventsMax
		r.chainOf(t, "a", "b")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		e := r.events(t)[0]
		pipe := r.client.Pipeline()
		for i := range old {
			pipe.Do(t.Context(), "ZADD", r.led.keys[0].outbox, e.At-old+int64(i), strings.TrimSuffix(e.Record(), fmt.Sprint(e.At))+fmt.Sprint(e.At-old+int64(i)))
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		gaze, seen := r.led.NewScanner(), make(map[string]bool)
		for look := range 20 {
			found, newest := must(gaze.Scan(t.Context(), r.now, 0)).Events, 0
			for _, x := range found {
				if len(x.Followers) != 1 {
					t.Errorf("look %d: followers %v", look, x.Followers)
				}
				if seen[x.Record()] = true; x.Record() == e.Record() {
					newest++
				}
			}
			if len(found) > 2*eventsMax || newest > 1 || look > 0 && newest == 0 && len(found) > eventsMax/2 {
				t.Errorf("look %d: %d events, the newest %d times", look, len(found), newest)
			}
		}
		if len(seen) != old+1 {
			t.Errorf("saw %d of %d events", len(seen), old+1)
		}
	})
}

// TestFollowerMovesOnBeforeItIsTold ends ticks of the upstream, and their follower is deployed to
// follow another job before the events are delivered: it has missed these ticks, once. Later events
// do not reach it.
func TestFollowerMovesOnBeforeItIsTold(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		ctx := t.Context()
		r.chainOf(t, "a", "b")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		r.complete(t, jobs.OutcomeFailed, tickClaim("a", "r2", 2))
		was := must(r.led.Define(ctx, r.now, []Definition{{Job: "b", Digest: "x"}}))[0]
		must(r.led.Define(ctx, r.now, []Definition{{Job: "b", Digest: "other", WasDigest: was.Digest, Text: []byte(`{"after":"c"}`)}}))
		r.pass(t, time.Second)
		r.runOne(t, "a", 3)
		for i, want := range []Status{RelayDone, RelayDone, RelayUnrelated} {
			e := r.events(t)[i]
			for range 2 {
				if got := must(r.led.Relay(ctx, e, "b")); got != want {
					t.Errorf("told of tick %d: %s, want %s", i+1, got, want)
				}
			}
		}
		got := make(map[int64]string)
		for _, row := range r.rows(t, "b") {
			if row.Count > 0 {
				got[row.Tick-noon] += row.Outcome.String() + " " + row.Reason
			}
		}
		if want := map[int64]string{1000: "missed late", 2000: "skipped upstream"}; !maps.Equal(got, want) {
			t.Errorf("the follower's history has %v, want %v", got, want)
		}
	})
}

// A living node holds the follower in a definition other than the stored one: a success waits for a
// node with the stored one, and is missed when there is none. The job's name makes no difference.
func TestFollowerHeldInAnotherDefinition(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.pass(t, time.Minute)
		for tick, c := range []struct {
			holders []string
			unheld  bool
			want    Status
		}{{[]string{"other"}, false, RelayUnheld}, {[]string{"other"}, true, RelayDone}, {[]string{"other", "d-after-b"}, true, RelayDone}} {
			r.runOne(t, "a", int64(tick+1))
			e := r.events(t)[tick]
			e.Holders, e.Unheld = c.holders, c.unheld
			if got := must(r.led.Relay(t.Context(), e, "b")); got != c.want {
				t.Errorf("tick %d: %s, want %s", tick+1, got, c.want)
			}
		}
		r.tale(t, "b", "missed 2-2 x1 late")
		r.relayAll(t)
		if l := must(r.led.InFlight(t.Context(), "b")); len(l) != 2 {
			t.Errorf("in flight: %+v", l)
		}
		r.sound(t)
	})
}

// TestRelayedByAnotherServer: followers' answers to one server count for nothing at another one.
func TestRelayedByAnotherServer(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		e := r.events(t)[0]
		if err := r.led.At("another").Relayed(t.Context(), e); !errors.Is(err, ErrServer) || len(r.events(t)) != 1 {
			t.Errorf("another server: %v, and %d events are left; want ErrServer and 1", err, len(r.events(t)))
		}
		if err := r.led.At(r.epoch()).Relayed(t.Context(), e); err != nil || len(r.events(t)) != 0 {
			t.Errorf("the server: %v, and %d events are left; want none", err, len(r.events(t)))
		}
	})
}
