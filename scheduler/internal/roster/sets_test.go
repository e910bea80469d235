package roster

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/escapement/escapement/locking/redistest"
	"github.com/escapement/escapement/sharding"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"
)

type defs = map[string]string

func announce(t *testing.T, r *Roster, d defs) string {
	t.Helper()
	digest := SetDigest(d)
	if err := r.Announce(t.Context(), digest, d); err != nil {
		t.Fatal(err)
	}
	return digest
}

func hold(t *testing.T, r *Roster, id, set string) View {
	t.Helper()
	return must(r.Beat(t.Context(), Member{Node: sharding.Node{ID: id, Set: set}}))(t)
}

func TestSetDigest(t *testing.T) {
	// printf 1:a1:b | sha256sum
	if got, want := SetDigest(defs{"a": "b"}), "facdde7abf1eac5b"; got != want {
		t.Errorf("SetDigest(a: b) = %s, want %s", got, want)
	}
	if SetDigest(nil) != SetDigest(defs{}) {
		t.Error("no map and an empty map differ")
	}
	rapid.Check(t, func(t *rapid.T) {
		gen := rapid.MapOfN(rapid.StringN(0, 3, -1), rapid.StringN(0, 3, -1), 0, 3)
		a, b := gen.Draw(t, "a"), gen.Draw(t, "b")
		if same := SetDigest(a) == SetDigest(b); same != maps.Equal(a, b) {
			t.Fatalf("digests equal: %v, sets equal: %v", same, !same)
		}
	})
}

func TestSetsReadBack(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := New(client, Config{})
		want := map[string]map[string]string{}
		for i := range 40 { // more than one read takes
			d := defs{"report": fmt.Sprint(i), "größe/\"x\"": "0"}
			want[announce(t, r, d)] = d
		}
		want[announce(t, r, nil)] = defs{}
		asked := append(slices.Collect(maps.Keys(want)), "0000000000000000", "", SetDigest(nil))
		if got := must(r.Sets(t.Context(), asked))(t); !reflect.DeepEqual(got, want) {
			t.Errorf("read %d sets, want %d: %v", len(got), len(want), got)
		}
		if got := must(r.Sets(t.Context(), nil))(t); len(got) != 0 {
			t.Errorf("asked for none, got %v", got)
		}
	})
}

func TestUnusedSetIsDropped(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := New(client, Config{TTL: time.Minute})
		used, unused := announce(t, r, defs{"a": "1"}), announce(t, r, defs{"b": "1"})
		hold(t, r, "x", used)
		stored := func() []string {
			hold(t, r, "x", used)
			got := must(r.Sets(t.Context(), []string{used, unused}))(t)
			return slices.Sorted(maps.Keys(got))
		}
		age(t, client, r.keys.setsSeen, keepSets*time.Minute-30*time.Second, used, unused)
		if got := stored(); len(got) != 2 {
			t.Errorf("before its time only %q is left", got)
		}
		age(t, client, r.keys.setsSeen, 30*time.Second, used, unused)
		if got := stored(); !slices.Equal(got, []string{used}) {
			t.Errorf("sets %q, want %q alone", got, used)
		}
		if n := client.ZCard(t.Context(), r.keys.setsSeen).Val(); n != 1 {
			t.Errorf("%d times are left, want 1", n)
		}
	})
}

func TestUnannounced(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		r := New(client, Config{})
		set := SetDigest(defs{"a": "1"})
		if hold(t, r, "x", "").Unannounced || !hold(t, r, "x", set).Unannounced {
			t.Error("a node is told to announce the set that it has not, or not told to announce the one that it has")
		}
		for range 2 {
			announce(t, r, defs{"a": "1"})
		}
		if hold(t, r, "x", set).Unannounced || client.HLen(t.Context(), r.keys.sets).Val() != 1 {
			t.Error("a set that was announced twice is not stored once")
		}
		must(client.FlushAll(t.Context()).Result())(t)
		if !hold(t, r, "x", set).Unannounced {
			t.Error("a node is not told that its set was lost")
		}
	})
}

func TestDamagedAndNewerSets(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		r := New(client, Config{})
		good, bad := announce(t, r, defs{"a": "1"}), SetDigest(defs{"b": "1"})
		for _, raw := range []string{`{"v":1,"jobs":{"b":"2"}}`, `{"v":1,"jo`, ``, `null`, `{"v":0,"jobs":{"b":"1"}}`, `{"v":"x"}`, `{"v":1,"jobs":[]}`} {
			must(client.HSet(ctx, r.keys.sets, bad, raw).Result())(t)
			got, err := r.Sets(ctx, []string{good, bad})
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), bad) {
				t.Errorf("%s: error %v, want ErrDamaged of %s", raw, err, bad)
			}
			if len(got) != 1 || got[good]["a"] != "1" {
				t.Errorf("%s: sets %v, want the good one alone", raw, got)
			}
			announce(t, r, defs{"b": "1"})
			if got := must(r.Sets(ctx, []string{bad}))(t); got[bad]["b"] != "1" {
				t.Errorf("%s: announcing did not mend it: %v", raw, got)
			}
		}
		for _, raw := range []string{`{"v":2,"jobs":["b"]}`, `{"v":10}`} {
			must(client.HSet(ctx, r.keys.sets, bad, raw).Result())(t)
			announce(t, r, defs{"b": "1"})
			if got := client.HGet(ctx, r.keys.sets, bad).Val(); got != raw {
				t.Errorf("announcing replaced a newer format: %s", got)
			}
			if got := must(r.Sets(ctx, []string{good, bad}))(t); len(got) != 1 {
				t.Errorf("sets %v, want the good one alone", got)
			}
		}
	})
}

func TestAnnounceRefuses(t *testing.T) {
	_, client := redistest.StartEmbedded(t)
	r := New(client, Config{})
	large := defs{}
	for i := range 30_000 {
		large[fmt.Sprintf("a-job-of-20-char-%05d", i)] = "0123456789abcdef"
	}
	tests := []struct {
		name string
		set  string
		defs defs
		want string
	}{
		{"another name", "0011223344556677", defs{"a": "1"}, "pass SetDigest"},
		{"no name", "", nil, "pass SetDigest"},
		{"not UTF-8", SetDigest(defs{"a\xff": "1"}), defs{"a\xff": "1"}, "UTF-8"},
		{"too large", SetDigest(large), large, "more than 1048576"},
	}
	for _, tt := range tests {
		err := r.Announce(t.Context(), tt.set, tt.defs)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want one with %q", tt.name, err, tt.want)
		}
		if got := errors.Is(err, ErrTooLarge); got != (tt.name == "too large") {
			t.Errorf("%s: is ErrTooLarge: %v", tt.name, got)
		}
	}
	if n := client.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("refused sets wrote %d keys", n)
	}
}
