package ledger_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/claim"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/follow"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

func TestRelayIsRefused(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		r.chainOf(t, "a", "b")
		r.create(t, "other")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		e := r.events(t)[0]
		for _, job := range []string{"nobody", "other", "a"} {
			if got := must(follow.Relay(t.Context(), r.led, e, job)); got != follow.Unrelated {
				t.Errorf("%s: %s", job, got)
			}
		}
		stranger := e
		stranger.Upstream = "x"
		if got := must(follow.Relay(t.Context(), r.led, stranger, "b")); got != follow.Unrelated {
			t.Errorf("of another job: %s", got)
		}
		r.client.ZAdd(t.Context(), r.led.Keys[0].Pending, members(ledger.PendingMax)...)
		if got := must(follow.Relay(t.Context(), r.led, e, "b")); got != follow.Full {
			t.Errorf("too many pending: %s", got)
		}
		r.client.ZRemRangeByRank(t.Context(), r.led.Keys[0].Pending, 0, 0)
		if got := must(follow.Relay(t.Context(), r.led, e, "b")); got != follow.Done {
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
		r.client.ZAdd(t.Context(), r.led.Keys[0].Outbox, members(10_000)...)
		if a := r.want(t, claim.JobBusy, tickClaim("a", "r2", 2)); a.Detail != "full outbox" {
			t.Errorf("%+v", a)
		}
		r.want(t, claim.JobBusy, passing("a", "r", 0, late(2, 3)))
		r.want(t, claim.Granted, tickClaim("free", "r3", 1)) // it has no followers
		if got := must(follow.Relay(t.Context(), r.led, e, "b")); got != follow.Full {
			t.Errorf("a follower that is followed: %s", got)
		}
		r.client.ZRemRangeByRank(t.Context(), r.led.Keys[0].Outbox, 0, 1)
		if got := must(follow.Relay(t.Context(), r.led, e, "b")); got != follow.Done {
			t.Errorf("one less: %s", got)
		}
	})
}

func TestFollowers(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		followJob := func(job string, want error) {
			t.Helper()
			if err := follow.Follow(t.Context(), r.led, 0, "a", job); !errors.Is(err, want) {
				t.Fatalf("%s: %v, want %v", job, err, want)
			}
		}
		for i := range 256 {
			followJob(fmt.Sprint("f", i), nil)
		}
		followJob("f0", nil) // again
		followJob("more", ledger.ErrRefused)
		for i := range 256 {
			if err := follow.Unfollow(t.Context(), r.led, 0, "a", fmt.Sprint("f", i)); err != nil {
				t.Fatal(err)
			}
		}
		if left := r.client.HGetAll(t.Context(), r.led.Keys[0].Followers).Val(); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// Events that wait for a follower fill pages of the outbox; later events are read with the next
// scan.
func TestNewEventsDoNotWaitForOld(t *testing.T) {
	onBoth(t, oneConfig, func(t *testing.T, r *rig) {
		const old = 5 * query.EventsMax
		r.chainOf(t, "a", "b")
		r.pass(t, time.Minute)
		r.runOne(t, "a", 1)
		e := r.events(t)[0]
		pipe := r.client.Pipeline()
		for i := range old {
			pipe.Do(t.Context(), "ZADD", r.led.Keys[0].Outbox, e.At-old+int64(i), strings.TrimSuffix(e.Record(), fmt.Sprint(e.At))+fmt.Sprint(e.At-old+int64(i)))
		}
		if _, err := pipe.Exec(t.Context()); err != nil {
			t.Fatal(err)
		}
		gaze, seen := query.NewScanner(r.led), make(map[string]bool)
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
			if len(found) > 2*query.EventsMax || newest > 1 || look > 0 && newest == 0 && len(found) > query.EventsMax/2 {
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
		was := must(define.Define(ctx, r.led, r.now, []define.Definition{{Job: "b", Digest: "x"}}))[0]
		must(define.Define(ctx, r.led, r.now, []define.Definition{{Job: "b", Digest: "other", WasDigest: was.Digest, Text: []byte(`{"after":"c"}`)}}))
		r.pass(t, time.Second)
		r.runOne(t, "a", 3)
		for i, want := range []ledger.Status{follow.Done, follow.Done, follow.Unrelated} {
			e := r.events(t)[i]
			for range 2 {
				if got := must(follow.Relay(ctx, r.led, e, "b")); got != want {
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
			want    ledger.Status
		}{{[]string{"other"}, false, follow.Unheld}, {[]string{"other"}, true, follow.Done}, {[]string{"other", "d-after-b"}, true, follow.Done}} {
			r.runOne(t, "a", int64(tick+1))
			e := r.events(t)[tick]
			e.Holders, e.Unheld = c.holders, c.unheld
			if got := must(follow.Relay(t.Context(), r.led, e, "b")); got != c.want {
				t.Errorf("tick %d: %s, want %s", tick+1, got, c.want)
			}
		}
		r.tale(t, "b", "missed 2-2 x1 late")
		r.relayAll(t)
		if l := must(query.InFlight(t.Context(), r.led, "b")); len(l) != 2 {
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
		if err := follow.Relayed(t.Context(), r.led.At("another"), e); !errors.Is(err, ledger.ErrServer) || len(r.events(t)) != 1 {
			t.Errorf("another server: %v, and %d events are left; want ErrServer and 1", err, len(r.events(t)))
		}
		if err := follow.Relayed(t.Context(), r.led.At(r.epoch()), e); err != nil || len(r.events(t)) != 0 {
			t.Errorf("the server: %v, and %d events are left; want none", err, len(r.events(t)))
		}
	})
}
