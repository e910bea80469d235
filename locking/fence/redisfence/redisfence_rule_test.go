package redisfence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
	"github.com/escapement/escapement/locking/redistest"
)

// onBoth runs a test against a redis-server and the embedded server.
func onBoth(t *testing.T, test func(t *testing.T, client *redis.Client)) {
	t.Helper()
	t.Run("redis-server", func(t *testing.T) { test(t, redistest.Start(t).Client(t)) })
	t.Run("embedded", func(t *testing.T) {
		_, client := redistest.StartEmbedded(t)
		test(t, client)
	})
}

// write is one way to write under a token; key "a" or "b".
type write func(ctx context.Context, key string, token locking.Token) error

// follows walks a guard through the rule, and looks at the stored data.
func follows(ctx context.Context, client *redis.Client, w write) error {
	for i, c := range []struct {
		key   string
		token locking.Token
		max   locking.Token // 0: accepted
	}{
		{"a", 5, 0}, {"a", 5, 0}, {"a", 4, 5}, {"a", 5, 0}, {"a", 9, 0}, {"a", 5, 9}, {"a", 8, 9}, {"a", 10, 0}, {"a", 9, 10},
		{"b", 1, 0}, {"b", 2, 0}, {"b", 1, 2},
		{"a", 1770000000000000, 0}, {"a", 1770000000000001, 0}, {"a", 1770000000000000, 1770000000000001},
		{"a", fence.MaxToken - 1, 0}, {"a", fence.MaxToken, 0}, {"a", fence.MaxToken - 1, fence.MaxToken}, {"a", 1, fence.MaxToken},
	} {
		before := client.Get(ctx, "{"+c.key+"}:data").Val()
		err := w(ctx, "{"+c.key+"}:data", c.token)
		after := client.Get(ctx, "{"+c.key+"}:data").Val()
		var stale *fence.StaleError
		switch {
		case c.max == 0 && err != nil:
			return fmt.Errorf("step %d: %d at %s is refused: %w", i, c.token, c.key, err)
		case c.max == 0 && after != fmt.Sprint(c.token):
			return fmt.Errorf("step %d: stored %s", i, after)
		case c.max > 0 && (!errors.As(err, &stale) || stale.Token != c.token || stale.Max != c.max):
			return fmt.Errorf("step %d: %d at %s after %d: want it refused, got %w", i, c.token, c.key, c.max, err)
		case c.max > 0 && after != before:
			return fmt.Errorf("step %d: refused and written: %s", i, after)
		}
	}
	return nil
}

func setter(g *Guard) write {
	return func(ctx context.Context, key string, token locking.Token) error {
		return g.Set(ctx, key, fmt.Sprint(token), token, 0)
	}
}

func TestSetFollowsTheRule(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		if err := follows(t.Context(), client, setter(New(client, Config{}))); err != nil {
			t.Error(err)
		}
	})
}

func TestCheckFollowsTheRule(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		g := New(client, Config{Namespace: "ns"})
		err := follows(t.Context(), client, func(ctx context.Context, key string, token locking.Token) error {
			if err := g.Check(ctx, key, token); err != nil {
				return err
			}
			return client.Set(ctx, key, fmt.Sprint(token), 0).Err()
		})
		if err != nil {
			t.Error(err)
		}
		if got := client.Get(t.Context(), "ns:fence:{{a}:data}").Val(); got != fmt.Sprint(fence.MaxToken) {
			t.Errorf("the fence holds %q", got)
		}
	})
}

// TestStorm lets many clients write to one key with shuffled tokens. A list notes the accepted
// tokens in the same step: they never go back.
func TestStorm(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		g, seed := New(client, Config{}), rand.Uint64()
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		work := make(chan locking.Token, 300)
		for _, i := range rnd.Perm(cap(work)) {
			work <- 1770000000000000 + locking.Token(i%60)
		}
		close(work)
		var all sync.WaitGroup
		var accepted atomic.Int64
		for range 8 {
			all.Go(func() {
				for token := range work {
					_, err := g.Run(t.Context(), pushScript, "{a}:fence", token, []string{"{a}:list"}, token)
					if err == nil {
						accepted.Add(1)
					} else if !errors.Is(err, fence.ErrStale) {
						t.Errorf("token %d: %v", token, err)
					}
				}
			})
		}
		all.Wait()
		list, err := client.LRange(t.Context(), "{a}:list", 0, -1).Result()
		if err != nil || int64(len(list)) != accepted.Load() || !slices.IsSorted(list) || list[len(list)-1] != "1770000000000059" { // all have 16 digits
			t.Errorf("%d accepted, list %v, %v", accepted.Load(), list, err)
		}
	})
}
