package sharding

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redistest"
)

func TestBeatReturnsTheLiving(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := NewRoster(client, RosterConfig{})
		full := Member{
			Node:    Node{ID: "b", Name: "host-b", Weight: 3, Labels: map[string]string{"zone": "a"}, Set: "0011223344556677", Draining: true},
			Version: "1.2.3", Revision: "r9", Generation: "neo", State: StateStandby,
			Started:  time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC),
			OffsetMS: -300_000, Running: 4, Jobs: 20, Owned: 7, ZoneData: "2026a",
		}
		for _, id := range []string{"c", "a"} {
			beat(t, r, id)
		}
		v := must(r.Beat(t.Context(), full))(t)
		wantMembers(t, v, "a", "b", "c")
		if v.Foreign != 0 {
			t.Errorf("%d foreign records, want none", v.Foreign)
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

func TestSilentMemberIsDropped(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := NewRoster(client, RosterConfig{TTL: time.Hour})
		beat(t, r, "silent")
		beat(t, r, "b")
		age(t, client, r.keys.seen, 59*time.Minute, "silent")
		wantMembers(t, beat(t, r, "b"), "b", "silent")
		age(t, client, r.keys.seen, time.Minute, "silent")
		wantMembers(t, beat(t, r, "b"), "b")
		if n := client.HLen(t.Context(), r.keys.roster).Val() + client.ZCard(t.Context(), r.keys.seen).Val(); n != 2 {
			t.Errorf("%d entries are left of one member, want 2", n)
		}
		wantMembers(t, beat(t, r, "silent"), "b", "silent")
	})
}

func TestSelfIsNeverDropped(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := NewRoster(client, RosterConfig{})
		beat(t, r, "a")
		beat(t, r, "b")
		age(t, client, r.keys.seen, 24*time.Hour, "a")
		wantMembers(t, beat(t, r, "a"), "a", "b")
	})
}

func TestStateDrainingIsDraining(t *testing.T) {
	_, client := embed(t)
	r := NewRoster(client, RosterConfig{})
	v := must(r.Beat(t.Context(), Member{Node: Node{ID: "a"}, State: StateDraining}))(t)
	if !v.Members[0].Draining || len(Eligible(v.Nodes(), nil)) != 0 {
		t.Errorf("%+v may be given work, but drains", v.Members[0])
	}
}

func TestLeave(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := NewRoster(client, RosterConfig{})
		beat(t, r, "a")
		beat(t, r, "b")
		for range 2 { // the second is a repetition
			if err := r.Leave(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
		}
		if n := client.ZCard(t.Context(), r.keys.seen).Val(); n != 1 {
			t.Errorf("%d times are left, want 1", n)
		}
		wantMembers(t, beat(t, r, "b"), "b")
		if err := r.Leave(t.Context(), ""); err == nil {
			t.Error("an empty ID left")
		}
	})
}

func TestMembersChangesNothing(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := NewRoster(client, RosterConfig{TTL: time.Hour})
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

func TestNamespacesAreApart(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		one := NewRoster(client, RosterConfig{Namespace: "one"})
		two := NewRoster(client, RosterConfig{Namespace: "two"})
		beat(t, one, "a")
		wantMembers(t, beat(t, two, "b"), "b")
		wantMembers(t, beat(t, one, "c"), "a", "c")
	})
}

func TestBeatIsOneCall(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := NewRoster(client, RosterConfig{})
		beat(t, r, "a") // loads the script
		var sent counter
		client.AddHook(&sent)
		beat(t, r, "a")
		if !slices.Equal(sent.names, []string{"evalsha"}) {
			t.Errorf("a beat sent %q, want one evalsha", sent.names)
		}
		must(client.ScriptFlush(t.Context()).Result())(t)
		wantMembers(t, beat(t, r, "b"), "a", "b")
	})
}

func TestKeysExpireWhenNobodyBeats(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := NewRoster(client, RosterConfig{})
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

func BenchmarkBeat(b *testing.B) {
	for _, members := range []int{5, 100} {
		b.Run(fmt.Sprint(members), func(b *testing.B) {
			r := NewRoster(redistest.Start(b).Client(b), RosterConfig{TTL: time.Hour})
			self := Member{Node: Node{Name: "host", Labels: map[string]string{"zone": "a"}}, Version: "1.2.3"}
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
