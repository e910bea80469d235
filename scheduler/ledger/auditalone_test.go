package ledger

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestVerifyLeavesAlone: what this version does not understand is named, is no broken promise, keeps
// nothing else from being checked, and stays as it is.
func TestVerifyLeavesAlone(t *testing.T) {
	for name, c := range map[string]struct {
		key, what  string // of what is left alone
		unverified bool
		plant      func(ctx context.Context, c *redis.Client, k keys) error
	}{
		"a newer row": {"{trace:0}:history:a", "row 17 of a: a record this version does not understand", false, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.RPush(ctx, k.history+"a", "2|R|what|ever").Err()
		}},
		"half a row": {"{trace:0}:history:a", "row 17 of a", false, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.RPush(ctx, k.history+"a", "1|R|176372640").Err()
		}},
		"an outcome that nobody knows": {"{trace:0}:history:a", "splendid", false, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.RPush(ctx, k.history+"a", "1|S|1|2|3|1|1|1|splendid|late|").Err()
		}},
		"a newer entry": {"{trace:0}:jobs", "entry of a", true, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.jobs, "a", "2|x").Err()
		}},
		"half a definition": {"{trace:0}:defs", "definition of a: ", true, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.defs, "a", c.HGet(ctx, k.defs, "a").Val()[:40]).Err()
		}},
		"a newer definition": {"{trace:0}:defs", "upgrade", true, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.defs, "a", `{"v":2,"name":"a"}`).Err()
		}},
		"no definition": {"{trace:0}:defs", "definition of a", true, func(ctx context.Context, c *redis.Client, k keys) error { return c.HDel(ctx, k.defs, "a").Err() }},
		"a newer run": {"{trace:0}:runs", "run strange: ", false, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.runs, "strange", "2|x").Err()
		}},
		"a newer row in the place of another": {"{trace:0}:history:a", "row 2 of a", false, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.LSet(ctx, k.history+"a", 1, "2|S|what|ever").Err()
		}},
		"a newer run in the place of another": {"{trace:0}:runs", "run last-a: ", false, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.runs, "last-a", "2|x").Err()
		}},
		"a newer pending run": {"{trace:0}:waiting", "pending run strange: ", false, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, k.waiting, "strange", "1|x").Err()
		}},
		"no history": {"{trace:0}:history:a", "WRONGTYPE", true, func(ctx context.Context, c *redis.Client, k keys) error {
			c.Del(ctx, k.history+"a")
			return c.Set(ctx, k.history+"a", "x", 0).Err()
		}},
		"a newer key": {"{trace}:generations", "key", false, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.Set(ctx, "{trace}:generations", 1, 0).Err()
		}},
		"a newer key of the partition": {"{trace:0}:shards", "key", false, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.Set(ctx, "{trace:0}:shards", 1, 0).Err()
		}},
		"a partition too many": {"{trace:1}:jobs", "key", false, func(ctx context.Context, c *redis.Client, k keys) error {
			return c.HSet(ctx, "{trace:1}:jobs", "a", "b").Err()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k := verified(t)
			if err := c.plant(t.Context(), k.client, k.led.keys[0]); err != nil {
				t.Fatal(err)
			}
			for _, known := range []string{"{trace}:roster", "{trace}:seen", "{trace}:sets", "{trace}:sets:seen", "{trace}:drains", "{trace:lock:a}", "{trace:lock:x}}:token", "{tracer}:x", "trace", "{trace-2:0}:y"} {
				k.client.Set(t.Context(), known, 1, 0)
			}
			before := dump(t, k.client)
			x := must(k.led.Examine(t.Context(), Scope{}))
			doubtful := slices.ContainsFunc(x.Violations, func(v Violation) bool {
				return v.Job == "a" && v.Promise == Books && strings.HasPrefix(v.What, "P2 cannot be verified, because some records cannot be read: gap: ") ||
					strings.Contains(v.What, "P2 cannot be verified, because some records cannot be read: the chain ends at ")
			})
			if len(x.Violations) != map[bool]int{true: 1}[doubtful] || doubtful != strings.HasSuffix(name, "in the place of another") || len(x.LeftAlone) != 1 || x.LeftAlone[0].Key != c.key || !strings.Contains(x.LeftAlone[0].What, c.what) {
				t.Errorf("left alone %+v, want %s %s; found %s", x.LeftAlone, c.key, c.what, show(x.Violations))
			}
			if want := map[bool][]string{true: {"a"}}[c.unverified]; !slices.Equal(x.Unverified, want) {
				t.Errorf("unverified are %v, want %v", x.Unverified, want)
			}
			strict := must(k.led.Verify(t.Context(), ""))
			if kind := x.LeftAlone[0].kind; (len(strict) > 0) != (kind != "key" && kind != "definition") {
				t.Errorf("where nobody else writes, that is %s", show(strict))
			}
			if after := dump(t, k.client); !maps.Equal(before, after) {
				t.Errorf("it wrote something: %v", differences(before, after))
			}
		})
	}
}

// TestKnownKeys: a key that this package has a use for is none that it does not know.
func TestKnownKeys(t *testing.T) {
	k := verified(t)
	l := k.led
	for key := range dump(t, k.client) {
		if strings.HasPrefix(key, "{") && !l.knows(key) {
			t.Errorf("%s is not known", key)
		}
	}
	if n := len(l.keys[0].all()); n != 17 {
		t.Errorf("all names %d keys, and there are 17 beside the histories: see keys", n)
	}
	for i := range strangersMax + 5 {
		k.client.Set(t.Context(), "{trace:0}:x"+strings.Repeat("y", i), 1, 0)
	}
	left := must(l.Examine(t.Context(), Scope{})).LeftAlone
	if n := len(left); n != strangersMax+1 || !strings.Contains(left[n-1].What, "and 5 more") {
		t.Errorf("%d left alone, the last %+v", n, left[n-1])
	}
}
