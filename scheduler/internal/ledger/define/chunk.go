package define

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// ChunkJobs is about how many jobs a chunk has at most, and half of that at least where a partition
// has more jobs than one has room for.
const ChunkJobs = 1000

// Chunk is some jobs of one partition, with the digests of the definitions that a node holds. The
// jobs of a chunk follow from their names and Of alone, so that a change of one job changes one
// chunk.
type Chunk struct {
	Part      int
	Place, Of int    // which of the partition's chunks it is, and how many there are: 1, 2, 4 and so on
	Digest    string // of its text
	Jobs      map[string]string
}

// Place returns which of a partition's chunks a job lies in.
func Place(job string, of int) int { return int(xxhash.Sum64String(job)>>40) & (of - 1) }

// Chunks are a node's definitions, job -> digest, by partition.
func Chunks(l *ledger.Ledger, held map[string]string) [][]Chunk {
	n := make([]int, len(l.Keys))
	for job := range held {
		n[l.Partition(job)]++
	}
	chunks := make([][]Chunk, len(l.Keys))
	for part, jobs := range n {
		of := 1
		for ; jobs > of*ChunkJobs; of *= 2 {
		}
		for place := 0; place < of && jobs > 0; place++ {
			chunks[part] = append(chunks[part], Chunk{Part: part, Place: place, Of: of, Jobs: make(map[string]string)})
		}
	}
	for job, digest := range held {
		of := chunks[l.Partition(job)]
		of[Place(job, len(of))].Jobs[job] = digest
	}
	for _, of := range chunks {
		for i := range of {
			of[i].Digest = ChunkDigest(ChunkText(of[i].Jobs))
		}
	}
	return chunks
}

// ChunkText is a chunk's stored text: job=digest, in the order of names, with commas between.
func ChunkText(held map[string]string) string {
	var b strings.Builder
	for i, job := range slices.Sorted(maps.Keys(held)) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(job + "=" + held[job])
	}
	return b.String()
}

// ChunkDigest is the digest of a chunk's text.
func ChunkDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// parseChunk reads a stored chunk, and since when it is there, ms.
func parseChunk(digest, record string) (held map[string]string, since int64, err error) {
	format, rest, _ := strings.Cut(record, "|")
	at, text, _ := strings.Cut(rest, "|")
	if since, err = strconv.ParseInt(at, 10, 64); err != nil || format != "1" || ChunkDigest(text) != digest {
		return nil, 0, fmt.Errorf("%w: chunk %s is of another format, or holds something else", ledger.ErrUnknownFormat, digest)
	}
	held = make(map[string]string, strings.Count(text, "=")) // the texts share the record's memory
	for pair := range strings.SplitSeq(text, ",") {
		if job, digest, ok := strings.Cut(pair, "="); ok {
			held[job] = digest
		}
	}
	return held, since, nil
}

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
