package roster

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/sharding"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
)

func TestBeatReturnsTheLiving(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := New(client, Config{})
		full := Member{
			Node:    sharding.Node{ID: "b", Name: "host-b", Weight: 3, Labels: map[string]string{"zone": "a"}, Set: "0011223344556677", Draining: true},
			Version: "1.2.3", Revision: "r9", Generation: "neo", State: StateStandby,
			Started:  time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC),
			OffsetMS: -300_000, Running: 4, Jobs: 20, Owned: 7, ZoneData: "2026a",
		}
		for _, id := range []string{"c", "a"} {
			beat(t, r, id)
		}
		v := must(r.Beat(t.Context(), full))(t)
		wantMembers(t, v, "a", "b", "c")
		if v.UnknownFormat != 0 {
			t.Errorf("%d foreign records, want none", v.UnknownFormat)
		}
		if v.NowMS < time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli() {
			t.Errorf("NowMS %d is not a time in milliseconds", v.NowMS)
		}
		got := v.Members[1]
		if got.Seen.UnixMilli() != v.NowMS {
			t.Errorf("self was seen at %v, want now, %d", got.Seen, v.NowMS)
		}
		got.Seen = time.Time{}
		if !reflect.DeepEqual(got, full) {
			t.Errorf("read back\n%+v, wrote\n%+v", got, full)
		}
		if other := v.Members[0]; other.State != StateActive || other.Seen.UnixMilli() > v.NowMS {
			t.Errorf("a is %q, seen %v, want active, seen before %d", other.State, other.Seen, v.NowMS)
		}
	})
}

func TestMembersChangesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := New(client, Config{TTL: time.Hour})
		if m := must(r.Members(t.Context()))(t); len(m) != 0 {
			t.Errorf("an empty roster has members: %v", m)
		}
		beat(t, r, "a")
		v := beat(t, r, "b")
		age(t, client, r.keys.seen, time.Hour, "a")
		before := must(content(t.Context(), client, r.keys))(t)
		score := client.ZScore(t.Context(), r.keys.seen, "a").Val()

		got := must(r.Members(t.Context()))(t)
		if want := []string{"a", "b"}; !slices.Equal(memberIDs(got), want) {
			t.Fatalf("members %q, want %q", memberIDs(got), want)
		}
		if got[0].State != StateGone || got[1].State != StateActive {
			t.Errorf("states %q and %q, want gone and active", got[0].State, got[1].State)
		}
		if got[1].Seen.UnixMilli() != v.NowMS {
			t.Errorf("b was seen %v, want %d", got[1].Seen, v.NowMS)
		}
		after := must(content(t.Context(), client, r.keys))(t)
		if before != after || score != client.ZScore(t.Context(), r.keys.seen, "a").Val() {
			t.Errorf("reading changed\n%s to\n%s", before, after)
		}
	})
}

func TestKeysExpireWhenNobodyBeats(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := New(client, Config{})
		check := func(want int) {
			t.Helper()
			names := client.Keys(t.Context(), "*").Val()
			if len(names) != want {
				t.Errorf("keys %q, want %d", names, want)
			}
			for _, key := range names {
				if left := client.PTTL(t.Context(), key).Val(); left < idle-time.Minute || left > idle {
					t.Errorf("%s lives %v more, want %v", key, left, idle)
				}
				if !strings.HasPrefix(key, "{escapement}:") {
					t.Errorf("%s does not lie in the namespace's slot", key)
				}
			}
		}
		announce(t, r, defs{"job": "00"})
		check(2)
		beat(t, r, "a")
		check(4)
	})
}

func TestBeatRefuses(t *testing.T) {
	_, client := redistest.StartEmbedded(t)
	r := New(client, Config{})
	tests := []struct {
		name string
		self Member
		want string
	}{
		{"no ID", Member{}, "ID is empty"},
		{"not UTF-8", Member{Node: sharding.Node{ID: "a\xff"}}, "UTF-8"},
		{"unknown state", Member{Node: sharding.Node{ID: "a"}, State: "resting"}, `state "resting"`},
		{"gone", Member{Node: sharding.Node{ID: "a"}, State: StateGone}, `state "gone"`},
		{"too large", Member{Node: sharding.Node{ID: "a", Labels: map[string]string{"l": strings.Repeat("x", MaxRecord)}}}, "more than 65536"},
		{"year", Member{Node: sharding.Node{ID: "a"}, Started: time.Unix(math.MaxInt32*1000, 0)}, "encode"},
	}
	for _, tt := range tests {
		_, err := r.Beat(t.Context(), tt.self)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
		if got := errors.Is(err, ErrTooLarge); got != (tt.name == "too large") {
			t.Errorf("%s: is ErrTooLarge: %v", tt.name, got)
		}
	}
	if n := client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("refused beats wrote %d keys", n)
	}
}

// everyCall makes each call of a roster once.
func everyCall(ctx context.Context, r *Roster) []error {
	_, err1 := r.Beat(ctx, Member{Node: sharding.Node{ID: "a"}})
	_, err2 := r.Members(ctx)
	_, err3 := r.Sets(ctx, []string{"x"})
	_, err4 := r.Resume(ctx, "a")
	_, err5 := r.Drains(ctx)
	return []error{err1, err2, err3, err4, err5, r.Leave(ctx, "a"), r.Announce(ctx, SetDigest(nil), nil), r.Drain(ctx, "a", Drained{})}
}

func TestConfigIsRefused(t *testing.T) {
	_, client := redistest.StartEmbedded(t)
	for _, cfg := range []Config{
		{Namespace: "a}b"}, {Namespace: "{a"},
		{TTL: -time.Second}, {TTL: time.Millisecond}, {TTL: 2 * time.Hour}, {TTL: time.Second + time.Microsecond},
	} {
		for i, err := range everyCall(t.Context(), New(client, cfg)) {
			if err == nil {
				t.Errorf("%+v: call %d was not refused", cfg, i+1)
			}
		}
	}
	if n := client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys were written under a bad config", n)
	}
}

func TestErrorsOfRedisAreWrapped(t *testing.T) {
	server, client := redistest.StartEmbedded(t)
	r := New(client, Config{})
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Beat(done, Member{Node: sharding.Node{ID: "a"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("beat under an ended context: %v", err)
	}
	server.Stop()
	for i, err := range everyCall(t.Context(), r) {
		if err == nil || !strings.HasPrefix(err.Error(), "roster: ") || errors.Unwrap(err) == nil {
			t.Errorf("call %d without a server: %v, want a wrapped error", i+1, err)
		}
	}
}

func BenchmarkBeat(b *testing.B) {
	for _, members := range []int{5, 100} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			r := New(redistest.Start(b).Client(b), Config{TTL: time.Hour})
			self := Member{Node: sharding.Node{Name: "host", Labels: map[string]string{"zone": "a"}}, Version: "1.2.3"}
			for i := range members {
				self.ID = fmt.Sprintf("01970000-0000-7000-8000-%012d", i)
				if _, err := r.Beat(b.Context(), self); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				if _, err := r.Beat(b.Context(), self); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
