package ledger

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// The look for strange keys reads keyPages pages of keyPage keys at most from each server, and
// names unknownKeysMax at most.
const (
	keyPage        = 1000
	keyPages       = 5000
	unknownKeysMax = 100
)

// beside are the namespace's keys outside the ledger: the roster's, spelt in
// scheduler/internal/roster/keys.go. Keys of locks, spelt in locking/redislock/keys.go, begin with
// lockPrefix, and keys of locking/cronlock with cronPrefix.
var beside = []string{"roster", "seen", "sets", "sets:seen", "drains"}

const (
	lockPrefix = "lock:"
	cronPrefix = "cron:"
)

// knows reports whether this version has a use for a key under the namespace's prefixes.
func (l *Ledger) knows(key string) bool {
	tag, rest, ok := strings.Cut(strings.TrimPrefix(key, "{"+l.cfg.Namespace), "}:")
	if strings.HasPrefix(tag, ":"+lockPrefix) || strings.HasPrefix(tag, ":"+cronPrefix) {
		return true
	}
	if tag == "" {
		ns := l.cfg.Namespace
		return ok && (key == controlKey(ns) || key == auditKey(ns) || key == notifiedKey(ns) ||
			key == catalogKey(ns) || key == catalogAtKey(ns) || key == catalogDroppedKey(ns) || key == handlersKey(ns) || slices.Contains(beside, rest))
	}
	p, err := strconv.Atoi(strings.TrimPrefix(tag, ":"))
	if err != nil || p < 0 || p >= len(l.keys) {
		return false
	}
	k := l.keys[p]
	return slices.Contains(k.all(), key) || strings.HasPrefix(key, k.history)
}

// all are a partition's keys, without its histories.
func (k keys) all() []string {
	return []string{k.jobs, k.defs, k.due, k.runs, k.leases, k.pending, k.waiting,
		k.kept, k.cancels, k.pauses, k.unique, k.followers, k.joins, k.outbox, k.chunks, k.announced, k.gate, k.incarnation, k.confirm, k.anew, k.recent, k.backfills, k.backfilled}
}

// UnknownKeys looks through all keys of the server, or of every master of a Cluster, for those
// under the namespace's prefixes that this version does not know.
func (l *Ledger) UnknownKeys(ctx context.Context) ([]UnknownFormat, error) {
	var mu sync.Mutex
	var found []string
	whole := true
	look := func(ctx context.Context, server *redis.Client) error {
		some, all, err := l.scan(ctx, server)
		mu.Lock()
		defer mu.Unlock()
		found, whole = append(found, some...), whole && all
		return err
	}
	var err error
	switch c := l.client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, look)
	case *redis.Client:
		err = look(ctx, c)
	}
	if err != nil {
		return nil, l.explain(ctx, "look for strange keys", err)
	}
	slices.Sort(found)
	found = slices.Compact(found) // a scan may name a key more than once
	var left []UnknownFormat
	for i, key := range found {
		if i == unknownKeysMax {
			left = append(left, UnknownFormat{Key: "{" + l.cfg.Namespace + "...", What: fmt.Sprintf("and %d more such keys", len(found)-i), Kind: "key"})
			break
		}
		left = append(left, UnknownFormat{Key: key, What: "a key this version does not know", Kind: "key"})
	}
	if !whole {
		left = append(left, UnknownFormat{Key: "{" + l.cfg.Namespace + "...", What: "the server has too many keys to look through all of them", Kind: "key"})
	}
	return left, nil
}

// scan returns the unknown keys of one server, and whether it looked through all keys.
func (l *Ledger) scan(ctx context.Context, server *redis.Client) (strange []string, whole bool, err error) {
	prefix := "{" + l.cfg.Namespace
	var cursor uint64
	for range keyPages {
		var page []string
		if page, cursor, err = server.Scan(ctx, cursor, prefix+"[:}]*", keyPage).Result(); err != nil {
			return nil, false, err
		}
		for _, key := range page {
			if !l.knows(key) {
				strange = append(strange, key)
			}
		}
		if cursor == 0 {
			return strange, true, nil
		}
	}
	return strange, false, nil
}
