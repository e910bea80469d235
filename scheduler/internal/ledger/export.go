package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// kind says what a piece is of a job.
type kind byte

// The kinds, each with the key it lies in.
const (
	pieceEntry     kind = iota // jobs
	pieceDef                   // defs
	pieceDue                   // due
	pieceWaiting               // waiting
	piecePending               // pending
	pieceCancel                // cancels
	pieceRows                  // history
	pieceKept                  // kept
	piecePause                 // pauses
	pieceUnique                // unique
	pieceFollowers             // followers
	pieceEvent                 // outbox
	pieceAnnounced             // chunks and announced
)

// Piece is something that is stored of a job, in a spelling that does not depend on the partition.
type Piece struct {
	kind  kind
	job   string // "" for a unique key whose job is not known
	name  string // field of a hash, member of a sorted set
	value string // of a hash
	score float64
	rows  []string // of a history
	part  int      // where it was read
}

// exportJobs is how many histories are read at a time.
const exportJobs = 16

// Export reads everything that a move has to bring over, partition by partition, and gives it to sink, the entries of a
// partition first. What cannot be brought over, because it says in no way that this version knows which job it belongs
// to, it returns as left. Nothing must be running, or the result is of no one moment. It ends at sink's first error.
func (l *Ledger) Export(ctx context.Context, sink func(Piece) error) (left []UnknownFormat, err error) {
	x := &export{l: l, sink: sink}
	for p := range l.keys {
		if err := x.partition(ctx, p); err != nil {
			return x.left, fmt.Errorf("read partition %d: %w", p, redisconn.Classify(redisconn.Addr(l.client), err))
		}
	}
	return x.left, nil
}

// export is the reading of a ledger, one partition after another.
type export struct {
	l    *Ledger
	sink func(Piece) error
	left []UnknownFormat

	part   int
	keys   keys
	store  shelf
	owners map[string]string // run id that is remembered as unique -> its job
}

// shelf is a partition without its histories and what is kept beside them.
type shelf struct {
	jobs, defs, waiting, cancels, pauses, followers *redis.MapStringStringCmd
	due, pending, unique, outbox                    *redis.ZSliceCmd
	kept                                            *redis.IntCmd
}

func (x *export) partition(ctx context.Context, p int) error {
	k := x.l.keys[p]
	x.part, x.keys = p, k
	_, err := x.l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		x.store = shelf{
			jobs: p.HGetAll(ctx, k.jobs), defs: p.HGetAll(ctx, k.defs), waiting: p.HGetAll(ctx, k.waiting), cancels: p.HGetAll(ctx, k.cancels),
			pauses: p.HGetAll(ctx, k.pauses), followers: p.HGetAll(ctx, k.followers),
			due: p.ZRangeWithScores(ctx, k.due, 0, -1), pending: p.ZRangeWithScores(ctx, k.pending, 0, -1),
			unique: p.ZRangeWithScores(ctx, k.unique, 0, -1), outbox: p.ZRangeWithScores(ctx, k.outbox, 0, -1), kept: p.HLen(ctx, k.kept),
		}
		return nil
	})
	if err != nil {
		return err
	}
	x.owners = make(map[string]string, len(x.store.unique.Val()))
	for _, z := range x.store.unique.Val() {
		x.owners[member(z)] = ""
	}
	for _, step := range []func() error{x.entries, x.byJob, x.definitions, func() error { return x.announced(ctx) }, x.waiting, x.events, func() error { return x.histories(ctx) }, x.unique} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func member(z redis.Z) string {
	s, _ := z.Member.(string)
	return s
}

func (x *export) put(p Piece) error {
	p.part = x.part
	return x.sink(p)
}

func (x *export) leave(key, job, kind string, err error) {
	x.left = append(x.left, UnknownFormat{Key: key, What: err.Error(), Job: job, Kind: kind})
}

// entries gives the entries, without the id that belongs to the token: the server they come to has another one, and its
// first token leaps. A job is due there at its cursor: nodes at this side may still put off those that nobody holds.
func (x *export) entries() error {
	listed := make(map[string]bool)
	for _, z := range x.store.due.Val() {
		listed[member(z)] = true
	}
	for _, job := range slices.Sorted(maps.Keys(x.store.jobs.Val())) {
		record := x.store.jobs.Val()[job]
		e, err := parseEntry(job, record)
		if err != nil {
			x.leave(x.keys.jobs, job, "entry", fmt.Errorf("entry of %s: %w", job, err))
			continue
		}
		f := strings.SplitN(record, "|", 7)
		f[5] = ""
		if e.Cursor != 0 && listed[job] {
			if err := x.put(Piece{kind: pieceDue, job: job, name: job, score: float64(e.Cursor)}); err != nil {
				return err
			}
		}
		if err := x.put(Piece{kind: pieceEntry, job: job, name: job, value: strings.Join(f, "|")}); err != nil {
			return err
		}
	}
	return nil
}

// byJob gives what is stored under the name of a job.
func (x *export) byJob() error {
	for _, of := range []struct {
		kind kind
		hash *redis.MapStringStringCmd
	}{{piecePause, x.store.pauses}, {pieceFollowers, x.store.followers}} {
		for _, job := range slices.Sorted(maps.Keys(of.hash.Val())) {
			if err := x.put(Piece{kind: of.kind, job: job, name: job, value: of.hash.Val()[job]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// waiting gives pending runs and open ticks, and who wants them ended. Such a wish of a run that is not there means nothing
// any more, nor does its time.
func (x *export) waiting() error {
	starts := make(map[string]float64)
	for _, z := range x.store.pending.Val() {
		starts[member(z)] = z.Score
	}
	for _, id := range slices.Sorted(maps.Keys(x.store.waiting.Val())) {
		record := x.store.waiting.Val()[id]
		lease, err := parsePending(id, record)
		if err != nil {
			x.leave(x.keys.waiting, "", "run", fmt.Errorf("pending run %s: %w", id, err))
			continue
		}
		x.owns(lease.Job, id, lease.Request)
		pieces := []Piece{{kind: pieceWaiting, job: lease.Job, name: id, value: record}}
		if at, ok := starts[id]; ok {
			pieces = append(pieces, Piece{kind: piecePending, job: lease.Job, name: id, score: at})
		}
		if flag, ok := x.store.cancels.Val()[id]; ok {
			pieces = append(pieces, Piece{kind: pieceCancel, job: lease.Job, name: id, value: flag})
		}
		for _, p := range pieces {
			if err := x.put(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// owns notes to which job unique ids belong.
func (x *export) owns(job string, ids ...string) {
	for _, id := range ids {
		if _, ok := x.owners[id]; ok {
			x.owners[id] = job
		}
	}
}

func (x *export) events() error {
	for _, z := range x.store.outbox.Val() {
		e, err := eventOf(member(z))
		if err != nil {
			x.leave(x.keys.outbox, "", "row", fmt.Errorf("event %.40q: %w", member(z), err))
			continue
		}
		if err := x.put(Piece{kind: pieceEvent, job: e.Upstream, name: member(z), score: z.Score}); err != nil {
			return err
		}
	}
	return nil
}

// histories gives rows, and what is kept beside them. Rows of a newer version go over as they are.
func (x *export) histories(ctx context.Context) error {
	for names := range slices.Chunk(slices.Sorted(maps.Keys(x.store.jobs.Val())), exportJobs) {
		lists := make([]*redis.StringSliceCmd, len(names))
		_, err := x.l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, name := range names {
				lists[i] = p.LRange(ctx, x.keys.history+name, 0, -1)
			}
			return nil
		})
		var other redis.Error
		if err != nil && !errors.As(err, &other) {
			return err
		}
		for i, name := range names {
			if err := lists[i].Err(); err != nil {
				x.leave(x.keys.history+name, name, "history", fmt.Errorf("history of %s: %w", name, err))
				continue
			}
			if err := x.history(ctx, name, lists[i].Val()); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *export) history(ctx context.Context, job string, rows []string) error {
	if len(rows) == 0 {
		return nil
	}
	if err := x.put(Piece{kind: pieceRows, job: job, name: job, rows: rows}); err != nil {
		return err
	}
	var fields []string
	for _, record := range rows {
		row, err := parseRow(job, record)
		if err != nil || row.Run == "" {
			continue
		}
		x.owns(job, row.Run, row.Request)
		fields = append(fields, row.Run, "p:"+row.Run)
	}
	slices.Sort(fields)
	fields = slices.Compact(fields)
	if len(fields) == 0 || x.store.kept.Val() == 0 {
		return nil
	}
	got, err := x.l.client.HMGet(ctx, x.keys.kept, fields...).Result()
	if err != nil {
		return err
	}
	for i, field := range fields {
		if value, ok := got[i].(string); ok {
			if err := x.put(Piece{kind: pieceKept, job: job, name: field, value: value}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *export) unique() error {
	for _, z := range x.store.unique.Val() {
		if err := x.put(Piece{kind: pieceUnique, job: x.owners[member(z)], name: member(z), score: z.Score}); err != nil {
			return err
		}
	}
	return nil
}
