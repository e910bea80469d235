//go:build unix

package redislock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// TestSameTrace gives both servers the same random operations and compares every answer and every
// key, but for the clock in them. Each server forgets waiters after locking.QueueTimeout by its own
// clock: a trace that took longer proves nothing and is played again.
func TestSameTrace(t *testing.T) {
	for what, share := range map[string]*locking.Share{"locks": nil, "permits": {Permits: 2}, "a read-write lock": {Mode: locking.Read}} {
		t.Run(what, func(t *testing.T) { sameTraces(t, share) })
	}
}

// sameTraces plays traces of a share, nil for locks.
func sameTraces(t *testing.T, share *locking.Share) {
	_, emb := redistest.StartEmbedded(t)
	clients := []*redis.Client{redistest.Start(t).Client(t), emb}
	for seed := range uint64(6) {
		for {
			begun := time.Now()
			differs := trace(t, clients, share, seed)
			if differs == "" {
				break
			}
			if took := time.Since(begun); took < locking.QueueTimeout {
				t.Fatalf("seed %d: %s", seed, differs)
			} else if t.Context().Err() != nil {
				t.Fatal("no trace was quick enough")
			} else {
				t.Logf("seed %d took %s, again: %s", seed, took, differs)
			}
		}
	}
}

// trace gives a hundred operations to both servers, empty at first, and returns where they differ.
func trace(t *testing.T, clients []*redis.Client, share *locking.Share, seed uint64) (differs string) {
	var drivers []*redislock.Driver
	for _, c := range clients {
		c.FlushAll(t.Context())
		d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
		defer d.Close()
		drivers = append(drivers, d)
	}
	granted := []map[string]locking.Token{{}, {}} // per driver: the token of each owner
	rng := rand.New(rand.NewPCG(seed, 7))

	as := func(which int, owner string) locking.Driver { // every other owner of a read-write lock writes
		if share == nil {
			return drivers[which]
		}
		s := *share
		if s.Mode == locking.Read && owner < "ownerc" {
			s.Mode = locking.Write
		}
		return drivers[which].Share(s)
	}
	var serial int
	acquire := func(which int, r locking.Request) string {
		g, err := as(which, r.Owner).Acquire(t.Context(), r)
		var held *locking.HeldError
		if errors.As(err, &held) {
			if share != nil { // of several that lapse in one millisecond, either
				held.Owner, held.Holder = "", ""
			}
			return fmt.Sprint("held by ", held.Owner, held.Holder, held.Place)
		}
		granted[which][r.Name+r.Owner] = g.Token
		granted[which][r.Name] = g.Token
		return fmt.Sprint("granted ", g.Owner, g.TTL, errors.Is(err, locking.ErrLost))
	}
	step := func(which int, kind int, name, owner string) string {
		ctx := t.Context()
		d := as(which, owner)
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
	for i := range 100 {
		kind := rng.IntN(7)
		if rng.IntN(50) == 0 {
			kind = 7
		}
		serial = i
		name, owner := "lock"+string(rune('a'+rng.IntN(3))), "owner"+string(rune('a'+rng.IntN(5)))
		k, e := step(0, kind, name, owner), step(1, kind, name, owner)
		if k != e {
			return fmt.Sprintf("step %d, kind %d, %s %s: redis-server %q, embedded %q", i, kind, name, owner, k, e)
		}
		if k, e := dump(t, clients[0]), dump(t, clients[1]); k != e {
			return fmt.Sprintf("step %d, kind %d, %s %s: keys differ\nredis-server %s\nembedded     %s", i, kind, name, owner, k, e)
		}
	}
	return ""
}

var clockAndRunID = regexp.MustCompile(`\d{16}|\d{13} |[0-9a-f]{40}|[0-9a-f-]{36}`)

// dump prints all keys, with tokens and run ids replaced.
func dump(t *testing.T, c *redis.Client) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"locka", "lockb", "lockc"} {
		keys := lockKeys(name)
		fmt.Fprintln(&b, keys[0], c.Get(t.Context(), keys[0]).Val(), c.HGetAll(t.Context(), keys[0]).Val(), c.PTTL(t.Context(), keys[0]).Val().Round(time.Minute))
		fmt.Fprintln(&b, c.ZRange(t.Context(), keys[2], 0, -1).Val(), c.HGetAll(t.Context(), keys[3]).Val())
		fmt.Fprintln(&b, keys[1], c.HGetAll(t.Context(), keys[1]).Val(), c.PTTL(t.Context(), keys[1]).Val().Round(time.Minute))
	}
	return clockAndRunID.ReplaceAllString(b.String(), "#")
}
