package redislock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

const (
	// scanStep is how many keys one SCAN looks at.
	scanStep = 1000

	// lookWithin is how long a server has to say who holds a lock of the list.
	lookWithin = time.Second
	// movingMost is how many locks of a server may stand in slots that it cannot serve now, before it counts as silent.
	movingMost = 16
)

// List returns the locks of the namespace that are held, sorted by name, for an
// operator: it walks over all keys of each server, a thousand in a call, and
// holds none up. It returns those behind the name after, "" for all. Of more than limit locks it returns limit, and more is true; 0 is no limit.
// Beside the error of a server that does not answer, which wraps locking.ErrUnreachable,
// stand the locks of the others; beside that of a slot of a Cluster that is on its way, all but those in it, unless a server has
// many such locks.
func (d *Driver) List(ctx context.Context, after string, limit int) (locks []locking.Ownership, more bool, err error) {
	if d.refused != nil {
		return nil, false, d.refused
	}
	names, err := d.names(ctx)
	unread := redisconn.Classify("list locks at redis "+redisconn.Addr(d.client), err)
	silent, moving := make(map[string]bool), make(map[string]int) // by address
	for _, name := range names {
		if name <= after {
			continue
		}
		if limit > 0 && len(locks) == limit {
			return locks, true, unread
		}
		at := ""
		if master, err := redisconn.Master(ctx, d.client, lockKeys(d.namespace, name)[0]); err == nil {
			at = master.Options().Addr
		}
		if silent[at] {
			continue
		}
		short, cancel := context.WithTimeout(ctx, lookWithin)
		o, err := d.Owner(short, name)
		cancel()
		if ctx.Err() != nil {
			return locks, false, errors.Join(unread, fmt.Errorf("lock %q: %w", name, err))
		}
		if errors.Is(err, locking.ErrUnreachable) {
			moving[at]++
			silent[at] = !redisconn.OfSlot(err) || moving[at] == movingMost
			unread = errors.Join(unread, fmt.Errorf("lock %q: %w", name, err))
			continue
		}
		if err != nil { // one that something else has written to hides none of the others
			o = locking.Ownership{Name: name, Owner: "unreadable", Holder: err.Error()}
		}
		if o.Held() { // it may have been given back meanwhile
			locks = append(locks, o)
		}
	}
	return locks, false, unread
}

// names returns the names of all locks, sorted.
func (d *Driver) names(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	var names []string
	scan := func(ctx context.Context, c redis.Cmdable) error {
		keys := c.ScanType(ctx, 0, glob(lockPrefix(d.namespace))+"*}", scanStep, "string").Iterator()
		for keys.Next(ctx) {
			name := strings.TrimSuffix(strings.TrimPrefix(keys.Val(), lockPrefix(d.namespace)), "}")
			mu.Lock()
			names = append(names, name)
			mu.Unlock()
		}
		return keys.Err()
	}
	err := redisconn.EachMaster(ctx, d.client, scan)
	slices.Sort(names)
	return slices.Compact(names), err // SCAN may say a key twice
}

// glob escapes what a pattern of Redis would take for more than itself.
func glob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(s)
}
