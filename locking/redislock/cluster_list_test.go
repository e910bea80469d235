//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// TestClusterList lists the locks of all masters, and of those that answer beside the error of one that does not.
func TestClusterList(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx := bound(t)
	var away redistest.Net
	gone, err := c.Master(ctx, lockKeysOf(lockName)[0])
	if err != nil {
		t.Fatal(err)
	}
	client := c.ClientOver(t, func(addr string) *redistest.Net {
		if addr == gone.Addr() {
			return &away
		}
		return new(redistest.Net)
	})
	t.Cleanup(away.Heal)
	d := redislock.NewDriver(client, redislock.Config{Namespace: "kit"})
	l := locking.New(d, locking.Config{})
	there := make(map[bool]int) // locks at the master that goes away, and elsewhere
	for i := range 30 {
		name := fmt.Sprint(lockName, i)
		at, err := c.Master(ctx, lockKeysOf(name)[0])
		if err != nil {
			t.Fatal(err)
		}
		there[at == gone]++
		lease, err := l.Acquire(ctx, name, locking.Options{TTL: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer lease.Close()
	}
	if locks, more, err := d.List(ctx, 100); len(locks) != 30 || more || err != nil {
		t.Errorf("%d locks of 30, more %t, %v", len(locks), more, err)
	}
	away.Cut()
	locks, _, err := d.List(ctx, 100)
	if !errors.Is(err, locking.ErrUnreachable) || len(locks) != there[false] {
		t.Errorf("%d locks of %d elsewhere, %v", len(locks), there[false], err)
	}
	away.Heal()
	client.AddHook(atScript{away.Cut}) // when all names are known
	begun := time.Now()
	locks, _, err = d.List(ctx, 100)
	if !errors.Is(err, locking.ErrUnreachable) || len(locks) != there[false] {
		t.Errorf("cut in the middle: %d locks of %d elsewhere, %v", len(locks), there[false], err)
	}
	if took := time.Since(begun); took > 6*time.Second {
		t.Errorf("it took %s to find out that a master is silent", took)
	}
}

// atScript does something before each script.
type atScript struct{ do func() }

func (atScript) DialHook(next redis.DialHook) redis.DialHook { return next }

func (atScript) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (a atScript) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.HasPrefix(cmd.Name(), "eval") {
			a.do()
		}
		return next(ctx, cmd)
	}
}

// TestListIsInterrupted: nothing is made up about locks that were not asked for any more.
func TestListIsInterrupted(t *testing.T) {
	_, c := withEmbedded(t)
	d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
	for i := range 5 {
		if _, err := d.Acquire(t.Context(), locking.Request{Name: fmt.Sprint(i), Owner: "o", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	c.AddHook(atScript{func() {
		if asked++; asked == 3 {
			cancel()
		}
	}})
	locks, _, err := d.List(ctx, 10)
	if len(locks) == 0 || !errors.Is(err, context.Canceled) || slices.ContainsFunc(locks, func(o locking.Ownership) bool { return o.Owner != "o" }) {
		t.Errorf("%+v, %v; want those that were read and the end of the context", locks, err)
	}
}

// TestClusterListWhileASlotMoves: a lock in a slot that is on its way cannot be read, and hides none of the others of its master.
func TestClusterListWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t)
	ctx := bound(t)
	d := redislock.NewDriver(c.Client(t), redislock.Config{Namespace: "kit"})
	const locks = 30
	for i := range locks {
		if _, err := d.Acquire(ctx, locking.Request{Name: fmt.Sprint(lockName, i), Owner: "o", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	first := lockName + "0"
	key := lockKeysOf(first)[0]
	from, err := c.Master(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	masters := c.Servers()[:3]
	if err := c.OpenSlot(ctx, key, masters[(slices.Index(masters, from)+1)%3]); err != nil {
		t.Fatal(err)
	}
	found, _, err := d.List(ctx, 0)
	if !errors.Is(err, locking.ErrUnreachable) || !strings.Contains(err.Error(), strconv.Quote(first)) {
		t.Errorf("%v; want that %s cannot be read now", err, first)
	}
	if len(found) != locks-1 {
		t.Errorf("%d locks; want all but one of %d", len(found), locks)
	}
}

// TestListOfManySlotsOnTheirWay: a server that serves none of many slots is not asked for each of their locks.
func TestListOfManySlotsOnTheirWay(t *testing.T) {
	e, c := withEmbedded(t)
	d := redislock.NewDriver(c, redislock.Config{Namespace: "kit"})
	for i := range 50 {
		if _, err := d.Acquire(t.Context(), locking.Request{Name: fmt.Sprint(i), Owner: "o", TTL: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	e.SetHook(func(p *server.Peer, cmd string, _ ...string) bool {
		if strings.HasPrefix(cmd, "EVAL") {
			asked++
			p.WriteError("CLUSTERDOWN Hash slot not served")
			return true
		}
		return false
	})
	locks, _, err := d.List(t.Context(), 0)
	if len(locks) != 0 || !errors.Is(err, locking.ErrUnreachable) || asked < 2 || asked > 20 {
		t.Errorf("%d locks, %v; asked %d times, want a few", len(locks), err, asked)
	}
}
