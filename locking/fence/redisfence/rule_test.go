package redisfence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/locking/redistest"
)

// onBoth runs a test against a redis-server and the embedded server.
func onBoth(t *testing.T, test func(t *testing.T, client *redis.Client)) {
	t.Helper()
	t.Run("real", func(t *testing.T) {
		s := redistest.Start(t)
		test(t, s.Client(t))
	})
	t.Run("embedded", func(t *testing.T) { test(t, connected(t, embedded(t))) })
}

// write is one way to write under a token; key "a" or "b".
type write func(ctx context.Context, key string, token locking.Token) error

// follows walks a guard through the rule, and looks at what is stored.
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

// mutated is Set with a change in the script's text.
func mutated(t *testing.T, g *Guard, from, to string) write {
	t.Helper()
	text := strings.Replace(setScript.script.Source(), from, to, 1)
	if text == setScript.script.Source() {
		t.Fatalf("the script has no %q", from)
	}
	s := &Script{redisconn.NewScript("mutant", text)}
	return func(ctx context.Context, key string, token locking.Token) error {
		beside, err := Beside(key)
		if err != nil {
			return err
		}
		_, err = g.run(ctx, s, key, beside, token, []string{key}, []any{fmt.Sprint(token), 0})
		return err
	}
}

func TestRuleCatchesMutants(t *testing.T) {
	const compare = "tonumber(stored) > tonumber(token)"
	for name, change := range map[string][2]string{
		"refuses equal tokens": {compare, "tonumber(stored) >= tonumber(token)"},
		"refuses nothing":      {compare, "false"},
		"compares as text":     {compare, "stored > token"},
		"loses digits":         {"redis.call('SET', fence, token)", "redis.call('SET', fence, string.format('%.15g', token))"},
		"remembers the first":  {"redis.call('SET', fence, token)", "redis.call('SETNX', fence, token)"},
		"writes and refuses": {"local fence, token",
			"redis.call('SET', KEYS[2], ARGV[3])\nlocal fence, token"},
	} {
		client := connected(t, embedded(t))
		if err := follows(t.Context(), client, mutated(t, New(client, Config{}), change[0], change[1])); err == nil {
			t.Errorf("a guard that %q passes", name)
		}
	}
}

// storm lets many clients write to one key with shuffled tokens, and returns what
// is wrong with what a list notes in the same step.
func storm(ctx context.Context, client *redis.Client, seed uint64, note func(ctx context.Context, token locking.Token) error) error {
	rnd := rand.New(rand.NewPCG(seed, 0))
	tokens := make([]locking.Token, 300)
	for i := range tokens {
		tokens[i] = 1770000000000000 + locking.Token(i%60)
	}
	rnd.Shuffle(len(tokens), func(i, j int) { tokens[i], tokens[j] = tokens[j], tokens[i] })
	work := make(chan locking.Token)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var wrong error
	accepted := 0
	for range 8 {
		wg.Go(func() {
			for token := range work {
				err := note(ctx, token)
				mu.Lock()
				if err == nil {
					accepted++
				} else if !errors.Is(err, fence.ErrStale) {
					wrong = errors.Join(wrong, err)
				}
				mu.Unlock()
			}
		})
	}
	for _, token := range tokens {
		work <- token
	}
	close(work)
	wg.Wait()
	list, err := client.LRange(ctx, "{a}:list", 0, -1).Result()
	if err != nil || len(list) != accepted || accepted == 0 || list[len(list)-1] != "1770000000000059" {
		wrong = errors.Join(wrong, fmt.Errorf("%d accepted, list %v, %w", accepted, list, err))
	}
	for i := 1; i < len(list); i++ {
		if list[i] < list[i-1] { // all have 16 digits
			wrong = errors.Join(wrong, fmt.Errorf("%s after %s", list[i], list[i-1]))
		}
	}
	return wrong
}

func TestStorm(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		g, seed := New(client, Config{}), rand.Uint64()
		err := storm(t.Context(), client, seed, func(ctx context.Context, token locking.Token) error {
			_, err := g.Run(ctx, pushScript, "{a}:fence", token, []string{"{a}:list"}, token)
			return err
		})
		if err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	})
}

// Compared in one call and written in the next: the storm must notice.
func TestStormCatchesCheckOutside(t *testing.T) {
	e := embedded(t)
	client := connected(t, e)
	g := New(client, Config{})
	for seed := range uint64(50) {
		client.FlushAll(t.Context())
		err := storm(t.Context(), client, seed, func(ctx context.Context, token locking.Token) error {
			if err := g.Check(ctx, "a", token); err != nil {
				return err
			}
			return client.RPush(ctx, "{a}:list", token).Err()
		})
		if err != nil {
			return
		}
	}
	t.Error("a guard outside of the script passes 50 storms")
}
