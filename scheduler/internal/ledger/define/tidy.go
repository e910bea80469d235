package define

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var tidyScript = ledger.Ship("define/tidy", tidyArgs{})

// AnnouncedFor is how long a definition without a node stays that is not current.
const AnnouncedFor = 30 * 24 * time.Hour

// pageMost is about how many entries are read at once.
const pageMost = 1000

// useless lists the records that Tidy deletes in a partition.
type useless struct {
	Announcements []string `json:"announcements,omitempty"`
	Chunks        []string `json:"chunks,omitempty"` // digests
	Defs          []string `json:"defs,omitempty"`   // digests
}

type tidyArgs struct {
	useless

	Changes string `json:"changes"` // how often anything was announced anew, as the caller saw it
	Old     int64  `json:"old"`     // an announcement is old that was renewed up to then, ms
}

// Tidy deletes useless records of a partition by Redis' time now, ms: announcements that were not
// renewed for AnnouncedFor, chunks without an announcement, and definitions that neither a chunk
// nor an entry names. It reads in pages and writes in batches. When nodes announce a definition
// meanwhile, Tidy leaves the rest for its next call.
func Tidy(ctx context.Context, l *ledger.Ledger, part int, now int64) error {
	old := now - AnnouncedFor.Milliseconds()
	changes, gone, err := findUseless(ctx, l, part, old)
	if err != nil {
		return l.Explain(ctx, "look for definitions that nobody holds", err)
	}
	for some := range gone.batches() {
		word, err := tidyScript.Call(ctx, l.Client, l.Keys[part].Tag, "", tidyArgs{some, changes, old}).Text()
		if err != nil || word != "done" {
			return redisconn.Classify("take away definitions that nobody holds", err)
		}
	}
	return nil
}

// batches cuts the deletions into calls: announcements first, then chunks, then definitions.
func (u useless) batches() func(yield func(useless) bool) {
	return func(yield func(useless) bool) {
		for some := range slices.Chunk(u.Announcements, ledger.BatchMax) {
			if !yield(useless{Announcements: some}) {
				return
			}
		}
		for some := range slices.Chunk(u.Chunks, ledger.BatchMax) {
			if !yield(useless{Chunks: some}) {
				return
			}
		}
		for some := range slices.Chunk(u.Defs, ledger.BatchMax) {
			if !yield(useless{Defs: some}) {
				return
			}
		}
	}
}

// findUseless finds what Tidy deletes. It reads the number of changes first, by which the script sees
// later announcements.
func findUseless(ctx context.Context, l *ledger.Ledger, part int, old int64) (changes string, u useless, err error) {
	k := l.Keys[part]
	chunks, err := l.Client.HKeys(ctx, k.Chunks).Result()
	if err != nil || len(chunks) == 0 {
		return "", u, err
	}
	if changes, err = l.Client.HGet(ctx, k.Chunks, "changes").Result(); err != nil && !errors.Is(err, redis.Nil) { // it was moved here
		return "", u, err
	}
	all, err := announcements(ctx, l, part)
	if err != nil {
		return "", u, err
	}
	live := make(map[string]bool)
	for _, a := range all {
		if a.seen > old {
			live[a.chunk] = true
		} else {
			u.Announcements = append(u.Announcements, a.member)
		}
	}
	u.Chunks = slices.DeleteFunc(chunks, func(chunk string) bool { return live[chunk] || chunk == "changes" })
	named := make(map[string]bool)
	unknownFormat, err := eachChunk(ctx, l, part, slices.Sorted(maps.Keys(live)), func(_ string, held map[string]string, _ int64) {
		for _, digest := range held {
			named[digest] = true
		}
	})
	if err == nil {
		err = eachEntry(ctx, l, part, func(e ledger.Entry) { named[e.Digest] = true })
	}
	if err != nil || unknownFormat > 0 { // of a newer version: the definitions it names are unknown
		return changes, u, err
	}
	defs, err := l.Client.HKeys(ctx, k.Defs).Result()
	u.Defs = slices.DeleteFunc(defs, func(digest string) bool { return named[digest] })
	return changes, u, err
}

// eachEntry reads the entries of a partition in pages. Unreadable entries are left out.
func eachEntry(ctx context.Context, l *ledger.Ledger, part int, f func(ledger.Entry)) error {
	for cursor := uint64(0); ; {
		page, next, err := l.Client.HScan(ctx, l.Keys[part].Jobs, cursor, "*", pageMost).Result()
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(page); i += 2 {
			if e, err := ledger.ParseEntry(page[i], page[i+1]); err == nil {
				f(e)
			}
		}
		if cursor = next; cursor == 0 {
			return nil
		}
	}
}
