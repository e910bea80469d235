package redisfence

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

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

func embedded(t *testing.T) *redistest.Embedded {
	t.Helper()
	e, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// connected returns a client of e, closed when the test ends.
func connected(t *testing.T, e *redistest.Embedded) *redis.Client {
	t.Helper()
	c := e.Client()
	t.Cleanup(func() { _ = c.Close() })
	return c
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

var pushScript = NewScript("push", "return redis.call('RPUSH', KEYS[1], ARGV[1])")

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

func TestRunHandsOverKeysAndArgs(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		g := New(client, Config{})
		for name, c := range map[string]struct {
			body string
			want string
		}{
			"keys and args": {"return {#KEYS, KEYS[1], KEYS[2], #ARGV, ARGV[1], ARGV[2]}", "[2 {a}1 {a}2 2 x 7] <nil>"},
			"nothing":       {"", "<nil> <nil>"},
			"nil":           {"return nil", "<nil> <nil>"},
			"false":         {"return false", "<nil> <nil>"},
			"number":        {"return 7", "7 <nil>"},
			"status":        {"return redis.status_reply('FINE')", "FINE <nil>"},
			"error reply":   {"return redis.error_reply('MINE no')", "MINE no"},
			"error":         {"error('oh')", "oh"},
			"wrong type":    {"redis.call('SET', KEYS[1], 'x') return redis.call('LPUSH', KEYS[1], 'x')", "WRONGTYPE"},
		} {
			reply, err := g.Run(t.Context(), NewScript(name, c.body), "{a}:fence", 5, []string{"{a}1", "{a}2"}, "x", 7)
			if got := fmt.Sprint(reply, " ", err); !strings.Contains(got, c.want) {
				t.Errorf("%s: got %s, want %s", name, got, c.want)
			}
			if strings.Contains(c.want, "<nil>") != (err == nil) || errors.Is(err, locking.ErrUnreachable) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestExpiryIsTheCallersChoice(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		ctx := t.Context()
		for _, c := range []struct {
			keep, ttl          time.Duration
			fenceFor, valueFor time.Duration // -1: for ever
		}{
			{0, 0, -1, -1},
			{0, time.Minute, -1, time.Minute},
			{time.Hour, 0, time.Hour, -1},
			{time.Nanosecond, 0, time.Millisecond, -1},
		} {
			g := New(client, Config{Keep: c.keep})
			if err := g.Set(ctx, "{a}", "x", 5, c.ttl); err != nil {
				t.Fatal(err)
			}
			for key, want := range map[string]time.Duration{"{a}:fence": c.fenceFor, "{a}": c.valueFor} {
				if got := client.PTTL(ctx, key).Val(); want < 0 && got != want || want > time.Millisecond && (got > want || got < want-10*time.Second) {
					t.Errorf("%+v: %s expires in %v", c, key, got)
				}
			}
		}
	})
}

func TestRefusals(t *testing.T) {
	client := connected(t, embedded(t))
	g, ctx := New(client, Config{}), t.Context()
	client.Set(ctx, "{a}:key-fence", "not a token", 0)
	client.LPush(ctx, "{b}:key-fence", "x")
	client.Set(ctx, "{c}:key-fence", "9999999999999999", 0)
	client.Set(ctx, "{e}:key-fence", "00000000000000004", 0) // 17 digits: no token is so long
	noRetries := embedded(t).Options()
	noRetries.MaxRetries = 3
	unfit := redis.NewClient(noRetries)
	defer unfit.Close()
	for want, err := range map[string]error{
		`holds "not a token", which is no token; is it used by something else?`: g.Set(ctx, "a", "x", 5, 0),
		`holds "00000000000000004", which`:                                      g.Set(ctx, "e", "x", 5, 0),
		"WRONGTYPE":                                                             g.Set(ctx, "b", "x", 5, 0),
		"refused: fence: token":                                                 g.Set(ctx, "c", "x", 5, 0),
		"ttl is -1s":                                                            g.Set(ctx, "d", "x", 5, -time.Second),
		"token is 0":                                                            g.Set(ctx, "d", "x", 0, 0),
		"key is empty":                                                          g.Set(ctx, "", "x", 5, 0),
		"fence has no name":                                                     g.Check(ctx, "", 5),
		"Config.Keep is -1s":                                                    New(client, Config{Keep: -time.Second}).Check(ctx, "a", 5),
		"set redis.Options.MaxRetries":                                          New(unfit, Config{}).Check(ctx, "a", 5),
		"no other key shares its slot":                                          g.Set(ctx, "a}", "x", 5, 0),
		"fence has a name of 600 bytes":                                         g.Set(ctx, strings.Repeat("k", 600), "x", 5, 0),
		"redis client: it is nil; make o":                                       New(nil, Config{}).Check(ctx, "a", 5),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, fence.ErrStale) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if client.Exists(ctx, "a", "b", "c", "d", "e", "a}").Val() != 0 {
		t.Error("refused and written")
	}
}

// What is longer than any token is no token. Without the limit it would count.
func TestLongTokensCatchMutant(t *testing.T) {
	onBoth(t, func(t *testing.T, client *redis.Client) {
		g := New(client, Config{})
		for name, w := range map[string]write{"a": setter(g), "b": mutated(t, g, "#stored > 16 or ", "")} {
			client.Set(t.Context(), "{"+name+"}:key-fence", "00000000000000004", 0)
			if err := w(t.Context(), name, 5); (err == nil) != (name == "b") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// The store's own settings are not the client's fault, and asking again does not
// mend them.
func TestHandlerOverMisfit(t *testing.T) {
	e := embedded(t)
	retrying := e.Options()
	retrying.MaxRetries = 3
	unfit := redis.NewClient(retrying)
	defer unfit.Close()
	for name, c := range map[string]struct {
		guard  *Guard
		status int
	}{
		"fit":      {New(connected(t, e), Config{}), http.StatusNoContent},
		"Keep":     {New(connected(t, e), Config{Keep: -time.Second}), http.StatusInternalServerError},
		"retrying": {New(unfit, Config{}), http.StatusInternalServerError},
		"nil":      {New(nil, Config{}), http.StatusInternalServerError},
	} {
		h := &fence.Handler{Store: c.guard, Resource: func(*http.Request) string { return "a" },
			Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })}
		r, w := httptest.NewRequestWithContext(t.Context(), http.MethodPut, "/a", http.NoBody), httptest.NewRecorder()
		r.Header.Set(fence.TokenHeader, "5")
		h.ServeHTTP(w, r)
		if w.Code != c.status || strings.Contains(w.Body.String(), "again") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

// A lost reply leaves the outcome unknown; asked again, the answer is the same.
func TestLostReply(t *testing.T) {
	var n redistest.Net
	e := embedded(t)
	client := n.Client(e.Options())
	defer client.Close()
	g, ctx := New(client, Config{}), t.Context()
	if err := g.Set(ctx, "a", "first", 5, 0); err != nil {
		t.Fatal(err)
	}
	n.LoseReplies(1, "eval")
	err := g.Set(ctx, "a", "second", 6, 0)
	if !errors.Is(err, locking.ErrUnreachable) || errors.Is(err, fence.ErrStale) {
		t.Fatalf("the reply was lost: %v", err)
	}
	if err := g.Set(ctx, "a", "second", 6, 0); err != nil {
		t.Errorf("asked again: %v", err)
	}
	if err := g.Set(ctx, "a", "third", 5, 0); !errors.Is(err, fence.ErrStale) {
		t.Errorf("stale: %v", err)
	}
}
