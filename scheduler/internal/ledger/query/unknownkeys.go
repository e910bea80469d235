package query

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/internal/ledger"
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
func knows(l *ledger.Ledger, key string) bool {
	tag, rest, ok := strings.Cut(strings.TrimPrefix(key, "{"+l.Config.Namespace), "}:")
	if strings.HasPrefix(tag, ":"+lockPrefix) || strings.HasPrefix(tag, ":"+cronPrefix) {
		return true
	}
	if tag == "" {
		k := ledger.NamespaceKeys(l.Config.Namespace)
		all := []string{k.Control, k.Audit, k.Notified, k.Catalog, k.CatalogAt, k.CatalogDropped, k.Handlers}
		return ok && (slices.Contains(all, key) || slices.Contains(beside, rest))
	}
	p, err := strconv.Atoi(strings.TrimPrefix(tag, ":"))
	if err != nil || p < 0 || p >= len(l.Keys) {
		return false
	}
	k := l.Keys[p]
	return slices.Contains(k.All(), key) || strings.HasPrefix(key, k.History)
}

// UnknownKeys looks through all keys of the server, or of every master of a Cluster, for those
// under the namespace's prefixes that this version does not know.
func UnknownKeys(ctx context.Context, l *ledger.Ledger) ([]UnknownFormat, error) {
	var mu sync.Mutex
	var found []string
	whole := true
	look := func(ctx context.Context, server *redis.Client) error {
		some, all, err := scan(ctx, l, server)
		mu.Lock()
		defer mu.Unlock()
		found, whole = append(found, some...), whole && all
		return err
	}
	var err error
	switch c := l.Client.(type) {
	case *redis.ClusterClient:
		err = c.ForEachMaster(ctx, look)
	case *redis.Client:
		err = look(ctx, c)
	}
	if err != nil {
		return nil, l.Explain(ctx, "look for strange keys", err)
	}
	slices.Sort(found)
	found = slices.Compact(found) // a scan may name a key more than once
	var left []UnknownFormat
	for i, key := range found {
		if i == unknownKeysMax {
			left = append(left, UnknownFormat{Key: "{" + l.Config.Namespace + "...", What: fmt.Sprintf("and %d more such keys", len(found)-i), Kind: "key"})
			break
		}
		left = append(left, UnknownFormat{Key: key, What: "a key this version does not know", Kind: "key"})
	}
	if !whole {
		left = append(left, UnknownFormat{Key: "{" + l.Config.Namespace + "...", What: "the server has too many keys to look through all of them", Kind: "key"})
	}
	return left, nil
}

// scan returns the unknown keys of one server, and whether it looked through all keys.
func scan(ctx context.Context, l *ledger.Ledger, server *redis.Client) (strange []string, whole bool, err error) {
	prefix := "{" + l.Config.Namespace
	var cursor uint64
	for range keyPages {
		var page []string
		if page, cursor, err = server.Scan(ctx, cursor, prefix+"[:}]*", keyPage).Result(); err != nil {
			return nil, false, err
		}
		for _, key := range page {
			if !knows(l, key) {
				strange = append(strange, key)
			}
		}
		if cursor == 0 {
			return strange, true, nil
		}
	}
	return strange, false, nil
}

// Leftovers names keys of partitions in a Redis that has no control record of the namespace, except
// gates and incarnations: lost with the record, or about to be found. 100 at most.
func Leftovers(ctx context.Context, client redis.UniversalClient, namespace string) ([]string, error) {
	found, err := UnknownKeys(ctx, (&ledger.Ledger{Client: client, Config: ledger.Config{Namespace: namespace}}))
	var keys []string
	for _, s := range found {
		if !strings.HasSuffix(s.Key, ":gate") && !strings.HasSuffix(s.Key, ":incarnation") {
			keys = append(keys, s.Key)
		}
	}
	return keys, err
}
