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
	// scanStep is the COUNT of one SCAN.
	scanStep = 1000

	// ownerTimeout limits the request for one lock of the list.
	ownerTimeout = time.Second
	// maxMoving is how many locks of one server may be in slots that it cannot serve, before its other locks are skipped.
	maxMoving = 16
)

// List returns the held locks of the namespace with names above after ("": all), sorted by name and
// token: for an operator, because List scans all keys of each server, a thousand in a call. A
// semaphore and a read-write lock have one Ownership for each holder. Of more than limit locks,
// List returns limit, and the remaining holders of the last name, and more is true; limit 0 means
// no limit.
//
// The error wraps locking.ErrUnreachable when a server does not answer; the locks of the other servers are returned with
// it. Of a Cluster that moves a slot, the locks outside of the slot are returned.
func (d *Driver) List(ctx context.Context, after string, limit int) (locks []locking.Ownership, more bool, err error) {
	if d.refused != nil {
		return nil, false, d.refused
	}
	names, err := d.names(ctx)
	unread := redisconn.Classify("list locks at redis "+redisconn.Addr(d.client), err)
	skipped, moving := make(map[string]bool), make(map[string]int) // by address
	for _, name := range names {
		if name <= after {
			continue
		}
		if limit > 0 && len(locks) >= limit {
			return locks, true, unread
		}
		at := ""
		if master, err := redisconn.Master(ctx, d.client, lockKeys(d.namespace, name)[0]); err == nil {
			at = master.Options().Addr
		}
		if skipped[at] {
			continue
		}
		short, cancel := context.WithTimeout(ctx, ownerTimeout)
		holders, err := d.Holders(short, name)
		cancel()
		if ctx.Err() != nil {
			return locks, false, errors.Join(unread, fmt.Errorf("lock %q: %w", name, err))
		}
		if errors.Is(err, locking.ErrUnreachable) {
			moving[at]++
			skipped[at] = !redisconn.OfSlot(err) || moving[at] == maxMoving
			unread = errors.Join(unread, fmt.Errorf("lock %q: %w", name, err))
			continue
		}
		if err != nil { // a key of another kind; the other locks are listed
			holders = []locking.Ownership{{Name: name, Owner: "unreadable", Holder: err.Error()}}
		}
		locks = append(locks, holders...) // none: it was released meanwhile
	}
	return locks, false, unread
}

// names returns the names of all locks, sorted.
func (d *Driver) names(ctx context.Context) ([]string, error) {
	var mu sync.Mutex
	var names []string
	scan := func(ctx context.Context, c redis.Cmdable) error {
		keys := c.Scan(ctx, 0, glob(lockPrefix(d.namespace))+"*}", scanStep).Iterator()
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
	return slices.Compact(names), err // SCAN may return a key twice
}

// glob escapes s for a pattern of Redis.
func glob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, `^`, `\^`).Replace(s)
}
