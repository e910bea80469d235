package redisfence

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/fence"
	"github.com/escapement/escapement/locking/redistest"
)

var pushScript = NewScript("push", "return redis.call('RPUSH', KEYS[1], ARGV[1])")

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

// The longest time of Go is as good as any: it must not become a negative one, which Redis refuses when the token is stored already.
func TestTheLongestExpiry(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	onBoth(t, func(t *testing.T, client *redis.Client) {
		if err := New(client, Config{Keep: most}).Check(t.Context(), "kept", 5); err != nil {
			t.Errorf("a fence kept for %s: %v", most, err)
		}
		err := New(client, Config{}).Set(t.Context(), "a", "x", 5, most)
		fenced, written := client.Exists(t.Context(), "{a}:key-fence").Val(), client.Exists(t.Context(), "a").Val()
		if err != nil || fenced != 1 || written != 1 {
			t.Errorf("a value for %s: %v; %d token and %d value are there, want both", most, err, fenced, written)
		}
	})
}

func TestRefusals(t *testing.T) {
	e, client := redistest.StartEmbedded(t)
	g, ctx := New(client, Config{}), t.Context()
	client.Set(ctx, "{a}:key-fence", "not a token", 0)
	client.LPush(ctx, "{b}:key-fence", "x")
	client.Set(ctx, "{c}:key-fence", "9999999999999999", 0)
	client.Set(ctx, "{e}:key-fence", "00000000000000004", 0) // 17 digits: no token is so long
	noRetries := e.Options()
	noRetries.MaxRetries = 3
	unfit := redis.NewClient(noRetries)
	defer unfit.Close()
	for want, err := range map[string]error{
		`holds "not a token", which is no token; check what else writes to it`: g.Set(ctx, "a", "x", 5, 0),
		`holds "00000000000000004", which`:                                     g.Set(ctx, "e", "x", 5, 0),
		"WRONGTYPE":                                                            g.Set(ctx, "b", "x", 5, 0),
		"refused: fence: token":                                                g.Set(ctx, "c", "x", 5, 0),
		"ttl is -1s":                                                           g.Set(ctx, "d", "x", 5, -time.Second),
		"token is 0":                                                           g.Set(ctx, "d", "x", 0, 0),
		"key is empty":                                                         g.Set(ctx, "", "x", 5, 0),
		"fence has no name":                                                    g.Check(ctx, "", 5),
		"Config.Keep is -1s":                                                   New(client, Config{Keep: -time.Second}).Check(ctx, "a", 5),
		"Config.Namespace is \"a:fence:{x\"; with braces":                      New(client, Config{Namespace: "a:fence:{x"}).Check(ctx, "a", 5),
		"set redis.Options.MaxRetries":                                         New(unfit, Config{}).Check(ctx, "a", 5),
		"no other key shares its slot":                                         g.Set(ctx, "a}", "x", 5, 0),
		"fence has a name of 600 bytes":                                        g.Set(ctx, strings.Repeat("k", 600), "x", 5, 0),
		"redis client: it is nil; make o":                                      New(nil, Config{}).Check(ctx, "a", 5),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, fence.ErrStale) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if client.Exists(ctx, "a", "b", "c", "d", "e", "a}").Val() != 0 {
		t.Error("refused and written")
	}
}

// The store's own settings are not the client's fault, and asking again does not
// mend them.
func TestHandlerOverMisfit(t *testing.T) {
	e, client := redistest.StartEmbedded(t)
	retrying := e.Options()
	retrying.MaxRetries = 3
	unfit := redis.NewClient(retrying)
	defer unfit.Close()
	for name, c := range map[string]struct {
		guard  *Guard
		status int
	}{
		"fit":      {New(client, Config{}), http.StatusNoContent},
		"Keep":     {New(client, Config{Keep: -time.Second}), http.StatusInternalServerError},
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

// A lost reply leaves the outcome unknown; the repeated call gets the same answer.
func TestLostReply(t *testing.T) {
	var n redistest.Net
	e, _ := redistest.StartEmbedded(t)
	client := n.Client(e.Options())
	defer client.Close()
	g, ctx := New(client, Config{}), t.Context()
	if err := g.Set(ctx, "a", "first", 5, 0); err != nil {
		t.Fatal(err)
	}
	n.LoseReplies(1, "eval")
	short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	err := g.Set(short, "a", "second", 6, 0)
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
