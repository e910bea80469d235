package define

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

var (
	currentScript  = ledger.Ship("define/current", nil)
	announceScript = ledger.Ship("define/announce", nil)
	storeScript    = ledger.Ship("define/store", nil)
)

// chunksPerCall bounds what one call brings, to about 1 MiB.
const chunksPerCall = 16

// Announce notes that nodes of a generation and revision hold chunks of one partition. Chunks that
// are stored are not sent again. An announcement that is not renewed for AnnouncedFor expires, see
// Tidy. Announce returns ErrClosed.
func Announce(ctx context.Context, l *ledger.Ledger, generation, revision string, chunks []Chunk) error {
	for some := range slices.Chunk(chunks, chunksPerCall) {
		missing, err := announce(ctx, l, generation, revision, some, func(Chunk) string { return "" })
		if err != nil {
			return err
		}
		lacks := func(c Chunk) bool { return !slices.Contains(missing, c.Digest) }
		if some = slices.DeleteFunc(slices.Clone(some), lacks); len(some) == 0 {
			continue
		}
		if _, err = announce(ctx, l, generation, revision, some, func(c Chunk) string { return ChunkText(c.Jobs) }); err != nil {
			return err
		}
	}
	return nil
}

func announce(ctx context.Context, l *ledger.Ledger, generation, revision string, chunks []Chunk, text func(Chunk) string) (missing []string, err error) {
	head := announceArgs{l.Believed(ctx), l.Config.MaxSkew, generation, revision}
	args := head.appendTo(nil)
	for _, c := range chunks {
		item := announceItem{c.Digest, text(c)}
		args = item.appendTo(args)
	}
	reply, err := ledger.Evaluate(ctx, l.Client, announceScript, announceScript.In(l.Keys[chunks[0].Part].Tag, ""), args).Slice()
	if err == nil {
		err = ledger.Refused(reply, 0)
	}
	return ledger.Texts(reply), redisconn.Classify("announce definitions", err)
}

// Current registers, as Define does, those jobs of a chunk that are stored as the chunk has them,
// and returns their cursors, ms; 0 where the schedule has no more. It sends the chunk's digest
// alone. Where the chunk is not stored it returns none. It returns ErrClosed.
func Current(ctx context.Context, l *ledger.Ledger, c Chunk, revision string) (map[string]int64, error) {
	args := currentArgs{c.Digest, revision}
	reply, err := ledger.Evaluate(ctx, l.Client, currentScript, currentScript.In(l.Keys[c.Part].Tag, ""), args.appendTo(nil)).Result()
	if err != nil {
		return nil, redisconn.Classify("register", err)
	}
	said, isText := reply.(string)
	if !isText {
		answer, _ := reply.([]any)
		return nil, ledger.Refused(answer, 0)
	}
	cursors := make(map[string]int64, len(c.Jobs))
	for item := range strings.SplitSeq(said, ",") {
		job, cursor, _ := strings.Cut(item, "=")
		if _, ours := c.Jobs[job]; ours { // a damaged chunk may name other jobs
			cursors[job] = ledger.Number(cursor) // of "-" it is 0
		}
	}
	return cursors, nil
}

// ReadChunks reads chunks of some partitions by their digests. Chunks that are missing or damaged
// are left out. An UnreachableError comes with the chunks of the other partitions.
func ReadChunks(ctx context.Context, l *ledger.Ledger, digests map[int][]string) (map[string]map[string]string, error) {
	var mu sync.Mutex
	held := make(map[string]map[string]string)
	err := l.EachReachable(ctx, l.QueueTimeout(ctx), "read what nodes hold", slices.Sorted(maps.Keys(digests)), func(ctx context.Context, parts []int) error {
		for _, part := range parts {
			_, err := eachChunk(ctx, l, part, digests[part], func(digest string, jobs map[string]string, _ int64) {
				mu.Lock()
				defer mu.Unlock()
				held[digest] = jobs
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return held, err
}

// eachChunk reads chunks of a partition, and counts the chunks that this version cannot read.
func eachChunk(ctx context.Context, l *ledger.Ledger, part int, digests []string, f func(digest string, held map[string]string, since int64)) (unknownFormat int, err error) {
	for some := range slices.Chunk(digests, chunksPerCall) {
		records, err := l.Client.HMGet(ctx, l.Keys[part].Chunks, some...).Result()
		if err != nil {
			return unknownFormat, err
		}
		for i, record := range records {
			if record == nil {
				continue
			}
			held, since, err := parseChunk(some[i], ledger.Text(record))
			if err != nil {
				unknownFormat++
				continue
			}
			f(some[i], held, since)
		}
	}
	return unknownFormat, nil
}

// announcement is a stored announcement of one chunk.
type announcement struct {
	member, chunk, generation, revision string
	seen                                int64
}

// announcements reads the announcements of a partition. Other members of the set are left out.
func announcements(ctx context.Context, l *ledger.Ledger, part int) (all []announcement, err error) {
	found, err := l.Client.ZRangeWithScores(ctx, l.Keys[part].Announced, 0, -1).Result()
	for _, z := range found {
		chunk, rest, _ := strings.Cut(ledger.Member(z), "|")
		if generation, revision, ok := strings.Cut(rest, "|"); ok {
			all = append(all, announcement{ledger.Member(z), chunk, generation, revision, int64(z.Score)})
		}
	}
	return all, err
}

// Announced is a definition of a job that nodes held within AnnouncedFor.
type Announced struct {
	Job, Digest, Generation string
	Revision                string // the newest revision among its nodes
	Since                   int64  // when it was first announced, ms: later definitions come after it
	Seen                    int64  // when it was last, ms
}

// newer compares two definitions of a job, see Newer.
func (a Announced) newer(b Announced) int {
	return cmp.Or(strings.Compare(a.Revision, b.Revision), cmp.Compare(a.Since, b.Since))
}

// Newer reports whether a replaces b, another definition of the job: a has the newer revision, or
// the same one and was announced later.
func (a Announced) Newer(b Announced) bool { return a.newer(b) > 0 }

// ListAnnounced reads the definitions of all generations, each once, by job. With an UnreachableError,
// the other partitions' definitions are returned too.
func ListAnnounced(ctx context.Context, l *ledger.Ledger) ([]Announced, error) {
	var all []Announced
	got := make([][]Announced, len(l.Keys))
	err := l.EachReachable(ctx, l.QueueTimeout(ctx), "read what generations hold", l.All(), func(ctx context.Context, parts []int) (err error) {
		for _, p := range parts {
			if got[p], err = AnnouncedIn(ctx, l, p); err != nil {
				return err
			}
		}
		return nil
	})
	for _, of := range got {
		all = append(all, of...)
	}
	if err != nil && !errors.As(err, new(*ledger.UnreachableError)) {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Announced) int {
		return cmp.Or(strings.Compare(a.Job, b.Job), strings.Compare(a.Digest, b.Digest))
	})
	return all, err
}

// AnnouncedIn is Announced for one partition.
func AnnouncedIn(ctx context.Context, l *ledger.Ledger, part int) ([]Announced, error) {
	found, err := announcements(ctx, l, part)
	if err != nil {
		return nil, err
	}
	by := make(map[string][]announcement)
	for _, a := range found {
		by[a.chunk] = append(by[a.chunk], a)
	}
	type name struct{ job, digest, generation string }
	newest := make(map[name]Announced)
	_, err = eachChunk(ctx, l, part, slices.Sorted(maps.Keys(by)), func(chunk string, held map[string]string, since int64) {
		for _, a := range by[chunk] {
			for job, digest := range held {
				this := Announced{job, digest, a.generation, a.revision, since, a.seen}
				was, known := newest[name{job, digest, a.generation}]
				if !known || this.Newer(was) {
					this.Seen = max(this.Seen, was.Seen)
					newest[name{job, digest, a.generation}] = this
				}
			}
		}
	})
	return slices.Collect(maps.Values(newest)), err
}

// Store stores standby definitions of jobs of one partition, at most BatchMax. text returns the
// definition of a digest that is not stored yet.
func Store(ctx context.Context, l *ledger.Ledger, part int, digests []string, text func(digest string) ([]byte, error)) error {
	missing, err := store(ctx, l, part, digests, func(string) ([]byte, error) { return nil, nil })
	if err == nil && len(missing) > 0 {
		_, err = store(ctx, l, part, missing, text)
	}
	return err
}

func store(ctx context.Context, l *ledger.Ledger, part int, digests []string, text func(digest string) ([]byte, error)) (missing []string, err error) {
	var args []string
	for _, digest := range digests {
		def, err := text(digest)
		if err != nil {
			return nil, err
		}
		item := storeItem{digest, string(def)}
		args = item.appendTo(args)
	}
	reply, err := ledger.Evaluate(ctx, l.Client, storeScript, storeScript.In(l.Keys[part].Tag, ""), args).Slice()
	if err == nil {
		err = ledger.Refused(reply, 0)
	}
	return ledger.Texts(reply), redisconn.Classify("store definitions", err)
}
