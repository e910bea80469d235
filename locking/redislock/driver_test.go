package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

func realAndEmbedded(t *testing.T) (server, embedded *redis.Client) {
	t.Helper()
	e, err := redistest.Embed()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	embedded = e.Client()
	t.Cleanup(func() { _ = embedded.Close() })
	return redistest.Start(t).Client(t), embedded
}

// TestSameTrace gives both servers the same random operations and compares
// every answer and every key, but for the clock in them.
func TestSameTrace(t *testing.T) {
	server, embedded := realAndEmbedded(t)
	drivers := []*Driver{NewDriver(server, Config{Namespace: "t"}), NewDriver(embedded, Config{Namespace: "t"})}
	clients := []*redis.Client{server, embedded}
	granted := []map[string]locking.Token{{}, {}} // per driver: the token of each owner
	rng := rand.New(rand.NewPCG(7, 7))

	var serial int
	acquire := func(which int, r locking.Request) string {
		g, err := drivers[which].Acquire(t.Context(), r)
		var held *locking.HeldError
		if errors.As(err, &held) {
			return fmt.Sprint("held by ", held.Owner, held.Holder, held.Place)
		}
		granted[which][r.Name+r.Owner] = g.Token
		granted[which][r.Name] = g.Token
		return fmt.Sprint("granted ", g.Owner, g.TTL, errors.Is(err, locking.ErrLost))
	}
	step := func(which int, kind int, name, owner string) string {
		d, ctx := drivers[which], t.Context()
		switch kind {
		case 0, 3:
			return acquire(which, locking.Request{Name: name, Owner: owner, Holder: "h" + owner, TTL: time.Hour, Delay: time.Minute, Queue: kind == 3})
		case 4:
			from := granted[which][name] + locking.Token(serial%5/4) // mostly the right one
			return acquire(which, locking.Request{Name: name, Owner: owner, TTL: time.Hour, From: from})
		case 5:
			err := d.Revoke(ctx, name, granted[which][name])
			return fmt.Sprint("revoked ", err == nil, errors.Is(err, locking.ErrLost))
		case 6:
			o, err := d.Owner(ctx, name)
			return fmt.Sprint("owner ", o.Owner, o.Holder, o.Left.Round(time.Minute), o.Revoked, o.Waiters, err)
		case 1:
			a, err := d.Renew(ctx, []locking.Renewal{{Name: name, Owner: owner, Token: granted[which][name+owner], TTL: time.Hour}})
			return fmt.Sprint("renewed ", a, err)
		case 2:
			err := d.Release(ctx, name, owner)
			return fmt.Sprint("released ", err == nil, errors.Is(err, locking.ErrLost))
		}
		clients[which].ScriptFlush(ctx)
		return "flushed"
	}
	for i := range 2000 {
		kind := rng.IntN(7)
		if rng.IntN(50) == 0 {
			kind = 7
		}
		serial = i
		name, owner := "lock"+string(rune('a'+rng.IntN(3))), "owner"+string(rune('a'+rng.IntN(5)))
		onServer, emb := step(0, kind, name, owner), step(1, kind, name, owner)
		if onServer != emb {
			t.Fatalf("step %d, %d %s %s: redis-server %q, embedded %q", i, kind, name, owner, onServer, emb)
		}
		if k, e := dump(t, server), dump(t, embedded); k != e {
			t.Fatalf("step %d, %d %s %s: keys differ\nredis-server %s\nembedded     %s", i, kind, name, owner, k, e)
		}
	}
}

var clockAndRunID = regexp.MustCompile(`\d{16}|\d{13} |[0-9a-f]{40}|[0-9a-f-]{36}`)

// dump prints all keys, with tokens and run ids replaced.
func dump(t *testing.T, c *redis.Client) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"locka", "lockb", "lockc"} {
		keys := lockKeys("t", name)
		fmt.Fprintln(&b, keys[0], c.Get(t.Context(), keys[0]).Val(), c.PTTL(t.Context(), keys[0]).Val().Round(time.Minute))
		fmt.Fprintln(&b, c.ZRange(t.Context(), keys[2], 0, -1).Val(), c.HGetAll(t.Context(), keys[3]).Val())
		fmt.Fprintln(&b, keys[1], c.HGetAll(t.Context(), keys[1]).Val(), c.PTTL(t.Context(), keys[1]).Val().Round(time.Minute))
	}
	return clockAndRunID.ReplaceAllString(b.String(), "#")
}

func TestTokenStateIsKept(t *testing.T) {
	server, embedded := realAndEmbedded(t)
	for _, c := range []*redis.Client{server, embedded} {
		d := NewDriver(c, Config{})
		if _, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
		state := lockKeys(DefaultNamespace, "a")[1]
		if left := c.PTTL(t.Context(), state).Val(); left <= 24*time.Hour-time.Minute {
			t.Errorf("the token state lasts %s after a grant; want 24h", left)
		}
		c.Del(t.Context(), state) // as an operator's hand, or an eviction
		if err := d.Release(t.Context(), "a", "o"); err != nil {
			t.Fatal(err)
		}
		if left := c.PTTL(t.Context(), state).Val(); left <= 24*time.Hour-time.Minute {
			t.Errorf("the token state lasts %s after a release that had to make it anew; want 24h", left)
		}
		if n := c.Exists(t.Context(), lockKeys(DefaultNamespace, "a")[0]).Val(); n != 0 {
			t.Error("the lock is still there after its release")
		}
	}
}

func TestForeignKey(t *testing.T) {
	server, embedded := realAndEmbedded(t)
	for _, c := range []*redis.Client{server, embedded} {
		d := NewDriver(c, Config{})
		key := lockKeys(DefaultNamespace, "a")[0]
		c.Set(t.Context(), key, "not ours", 0)
		if _, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Minute}); !errors.Is(err, locking.ErrHeld) {
			t.Errorf("over a foreign string: %v; want held, and the value left alone", err)
		}
		if err := d.Release(t.Context(), "a", "o"); !errors.Is(err, locking.ErrLost) || c.Get(t.Context(), key).Val() != "not ours" {
			t.Errorf("release over a foreign string: %v, value %q", err, c.Get(t.Context(), key).Val())
		}
		if _, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Minute, Queue: true}); !errors.Is(err, locking.ErrHeld) {
			t.Errorf("in line for a foreign string: %v; want held", err)
		}
		if left := c.PTTL(t.Context(), lockKeys(DefaultNamespace, "a")[1]).Val(); left <= 0 || left > locking.Patience {
			t.Errorf("who stands in line for a foreign string leaves a state for %s; want %s at most", left, locking.Patience)
		}
		c.Del(t.Context(), lockKeys(DefaultNamespace, "a")...)
		c.SAdd(t.Context(), key, "x")
		if _, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Minute}); err == nil || errors.Is(err, locking.ErrHeld) || errors.Is(err, locking.ErrUnreachable) {
			t.Errorf("over a set: %v; want the reply of Redis", err)
		}
	}
}

func TestRefusedClient(t *testing.T) {
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer c.Close()
	d := NewDriver(c, Config{})
	_, acquire := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Minute})
	_, renew := d.Renew(t.Context(), []locking.Renewal{{Name: "a"}})
	for _, err := range []error{acquire, renew, d.Release(t.Context(), "a", "o")} {
		var input *locking.InputError
		if !errors.As(err, &input) || input.Field != "client" || !strings.Contains(err.Error(), "MaxRetries") || errors.Is(err, locking.ErrUnreachable) {
			t.Errorf("got %v; want which option to set, before anything is sent", err)
		}
	}
}

func TestRefusedConfig(t *testing.T) {
	_, c := realAndEmbedded(t)
	for field, cfgs := range map[string][]Config{
		"Config.Namespace": {{Namespace: "a}b"}, {Namespace: "a:lock"}},
		"Config.Confirm":   {{Confirm: -1}},
	} {
		for _, cfg := range cfgs {
			_, err := NewDriver(c, cfg).Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Minute})
			var input *locking.InputError
			if !errors.As(err, &input) || input.Field != field {
				t.Errorf("%+v: %v; want an *InputError of %s", cfg, err, field)
			}
		}
	}
	for field, cfg := range map[string]Config{"Config.Margin": {Margin: -1}, "Config.CallTimeout": {CallTimeout: -1}} { // for the Locker
		_, err := New(c, cfg).Acquire(t.Context(), "a", locking.Options{})
		var input *locking.InputError
		if !errors.As(err, &input) || input.Field != field {
			t.Errorf("%+v: %v; want an *InputError of %s", cfg, err, field)
		}
	}
	for _, namespace := range []string{"", "team-a", "a b", "a:locks", "lock:a"} {
		if err := NewDriver(c, Config{Namespace: namespace, Confirm: 0}).refused; err != nil {
			t.Errorf("namespace %q: %v", namespace, err)
		}
	}
}

func TestUnreachableServer(t *testing.T) {
	c := redis.NewClient(redistest.ClientOptions("127.0.0.1:1"))
	defer c.Close()
	d := NewDriver(c, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, acquire := d.Acquire(ctx, locking.Request{Name: "a", Owner: "o", TTL: time.Minute})
	_, renew := d.Renew(ctx, []locking.Renewal{{Name: "a"}, {Name: "b"}})
	for _, err := range []error{acquire, renew, d.Release(ctx, "a", "o")} {
		if !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
			t.Errorf("got %v; want ErrUnreachable and the address", err)
		}
	}
}

func TestRenewManyLocks(t *testing.T) {
	server, embedded := realAndEmbedded(t)
	for _, c := range []*redis.Client{server, embedded} {
		d := NewDriver(c, Config{})
		g, err := d.Acquire(t.Context(), locking.Request{Name: "a", Owner: "o", TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		batch := make([]locking.Renewal, 500)
		for i := range batch {
			batch[i] = locking.Renewal{Name: "a", Owner: "o", Token: g.Token, TTL: time.Minute}
		}
		batch[250].Name = "b"
		c.ScriptFlush(t.Context())
		got, err := d.Renew(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range got {
			if want := locking.Renewed; a != want && i != 250 || a != locking.Gone && i == 250 {
				t.Fatalf("renewal %d of %d: %v", i, len(batch), a)
			}
		}
	}
}

// One lock's trouble must not hide the answers for the others, nor be hidden by them.
func TestRenewAnswersWhatItCan(t *testing.T) {
	server, _ := realAndEmbedded(t)
	d := NewDriver(server, Config{})
	g, err := d.Acquire(t.Context(), locking.Request{Name: "good", Owner: "o", TTL: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	server.SAdd(t.Context(), lockKeys(DefaultNamespace, "bad")[0], "x")
	got, err := d.Renew(t.Context(), []locking.Renewal{
		{Name: "bad", Owner: "o", Token: 1, TTL: time.Minute},
		{Name: "good", Owner: "o", Token: g.Token, TTL: time.Minute},
	})
	if !redis.HasErrorPrefix(err, "WRONGTYPE") || len(got) != 2 || got[0] != locking.Unknown || got[1] != locking.Renewed {
		t.Errorf("got %v, %v; want [unknown renewed], and why", got, err)
	}
}

func TestLockKeysShareASlot(t *testing.T) {
	for _, name := range []string{"a", "order:42", "{a}", "}", "a}b{c", "{"} {
		keys := lockKeys("ns", name)
		if tag(keys[0]) != tag(keys[1]) || tag(keys[0]) == "" {
			t.Errorf("%q: tags %q and %q", name, tag(keys[0]), tag(keys[1]))
		}
	}
}

// tag returns what Redis Cluster hashes: between the first '{' and the first
// '}' after it.
func tag(key string) string {
	_, rest, _ := strings.Cut(key, "{")
	inside, _, _ := strings.Cut(rest, "}")
	return inside
}
