package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/escapement/escapement/locking/redisconn"
)

// A part of a copy holds at most adoptBytes, or one value that is larger, and adoptValues.
const (
	adoptBytes  = 256 << 10
	adoptValues = 1000
)

// Filler writes what an Export gives into a namespace that a move fills. It is not safe for concurrent use.
type Filler struct {
	l       *Ledger
	id      string
	copy    int64
	sources int // partitions of the namespace that was read
	parts   []part
	held    []holders // by partition
}

// part is what is to be written into a partition next.
type part struct {
	number int64 // of the last one written
	keys   []string
	args   []any
	values int
	bytes  int
}

// Fill begins a copy of this number, higher than any before, and empties the partitions, which have sources partitions'
// worth of jobs to take. From then on nothing is written of a copy before it. It returns ErrRefused when the move does not
// fill the namespace, or when a later copy has begun.
func (l *Ledger) Fill(ctx context.Context, id string, number int64, sources int) (*Filler, error) {
	f := &Filler{l: l, id: id, copy: number, sources: sources, parts: make([]part, len(l.keys)), held: make([]holders, len(l.keys))}
	if err := l.EndCopies(ctx, id, number); err != nil {
		return nil, err
	}
	for p := range l.keys {
		gone, err := l.stored(ctx, p)
		if err != nil {
			return nil, err
		}
		for _, key := range gone {
			f.parts[p].do("D", key)
			if err := f.flush(ctx, p, false); err != nil {
				return nil, err
			}
		}
		if err := f.flush(ctx, p, true); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// EndCopies sees to it that nothing is written any more of copies before this number.
func (l *Ledger) EndCopies(ctx context.Context, id string, number int64) error {
	for p := range l.keys {
		if err := l.EndCopiesAt(ctx, p, id, number); err != nil {
			return err
		}
	}
	return nil
}

// EndCopiesAt is EndCopies for one partition.
func (l *Ledger) EndCopiesAt(ctx context.Context, p int, id string, number int64) error {
	return l.adopt(ctx, p, id, number, part{})
}

// stored are a partition's keys without its gate, the histories before the jobs that name them.
func (l *Ledger) stored(ctx context.Context, p int) ([]string, error) {
	k := l.keys[p]
	names, err := l.client.HKeys(ctx, k.jobs).Result()
	if err != nil {
		return nil, redisconn.Classify("look what is in the partition", err)
	}
	all := make([]string, 0, len(names)+len(k.all()))
	for _, name := range names {
		all = append(all, k.history+name)
	}
	return append(all, slices.DeleteFunc(k.all(), func(key string) bool { return key == k.gate })...), nil
}

// do adds something to be done to a key, at the end of the part.
func (b *part) do(what, key string, values ...any) {
	at := slices.Index(b.keys, key)
	if at < 0 {
		at = len(b.keys)
		b.keys = append(b.keys, key)
	}
	b.args = append(b.args, what, strconv.Itoa(at+2), strconv.Itoa(len(values)))
	b.args = append(b.args, values...)
	b.values += len(values) + 3
}

// Add writes a piece, now or with those that follow.
func (f *Filler) Add(ctx context.Context, p Piece) error {
	for q := range f.l.keys {
		if !f.belongs(p, q) {
			continue
		}
		if p.kind == pieceAnnounced {
			if err := f.announce(ctx, q, p); err != nil {
				return err
			}
			continue
		}
		for _, piece := range pages(p) {
			f.parts[q].add(f.l.keys[q], piece)
			if err := f.flush(ctx, q, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// belongs says whether a piece belongs into a partition. A unique key does not say whose it is, and its job may be one that
// has no row any more, or has none yet; left out, it would let a request through a second time. So it goes wherever a
// job of the partition that it comes from may go: partitions that leave the same rest when divided by what is
// common to both numbers of partitions. Elsewhere it is never asked for, and it is forgotten when its time is over.
func (f *Filler) belongs(p Piece, q int) bool {
	if p.job != "" {
		return f.l.Partition(p.job) == q
	}
	a, b := f.sources, len(f.l.keys)
	for b != 0 {
		a, b = b, a%b
	}
	return q%a == p.part%a
}

// pages are the piece, a long history in pieces.
func pages(p Piece) []Piece {
	if len(p.rows) <= 64 {
		return []Piece{p}
	}
	var out []Piece
	for rows := range slices.Chunk(p.rows, 64) {
		page := p
		page.rows = rows
		out = append(out, page)
	}
	return out
}

func (b *part) add(k keys, p Piece) {
	b.bytes += p.size()
	hash := map[kind]string{pieceEntry: k.jobs, pieceDef: k.defs, pieceWaiting: k.waiting, pieceCancel: k.cancels, pieceKept: k.kept,
		piecePause: k.pauses, pieceFollowers: k.followers}
	set := map[kind]string{pieceDue: k.due, piecePending: k.pending, pieceUnique: k.unique, pieceEvent: k.outbox}
	switch {
	case p.kind == pieceRows:
		rows := make([]any, len(p.rows))
		for i, row := range p.rows {
			rows[i] = row
		}
		b.do("R", k.history+p.job, rows...)
	case set[p.kind] != "":
		b.do("Z", set[p.kind], score(p.score), p.name)
	default:
		b.do("H", hash[p.kind], p.name, p.value)
	}
}

// score spells the score of a sorted set.
func score(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// Flush writes what Add has not written yet.
func (f *Filler) Flush(ctx context.Context) error {
	for p := range f.parts {
		for _, of := range slices.Sorted(maps.Keys(f.held[p])) {
			f.parts[p].chunk(f.l.keys[p], of, f.held[p][of])
			if err := f.flush(ctx, p, false); err != nil {
				return err
			}
		}
		f.held[p] = nil
		if err := f.flush(ctx, p, true); err != nil {
			return err
		}
	}
	return nil
}

// flush writes the part of a partition if it is full, or if there is anything in it.
func (f *Filler) flush(ctx context.Context, p int, now bool) error {
	b := &f.parts[p]
	if len(b.args) == 0 || !now && b.values < adoptValues && b.bytes < adoptBytes {
		return nil
	}
	b.number++
	err := f.l.adopt(ctx, p, f.id, f.copy, *b)
	*b = part{number: b.number}
	return err
}

func (l *Ledger) adopt(ctx context.Context, p int, id string, number int64, b part) error {
	op := fmt.Sprintf("copy %d, part %d, to partition %d at %s", number, b.number, p, redisconn.Addr(l.client))
	ks := append([]string{l.keys[p].gate}, b.keys...)
	args := append([]any{id, ms(number), ms(b.number)}, b.args...)
	word, err := adoptScript.Run(ctx, l.client, ks, args...).Text()
	switch {
	case err != nil:
		return redisconn.Classify(op, err)
	case word == "done":
		return nil
	case word == "stale":
		return fmt.Errorf("%w: %s: another copy has begun meanwhile; let one of them end, then run `move copy` again", ErrRefused, op)
	}
	return fmt.Errorf("%w: %s: its gate is %q, so the move does not fill it; `move status` shows the next step", ErrRefused, op, word)
}

// Wipe deletes everything in the partitions whose gates are in this state, and had this move last, but for the gates. It
// returns ErrRefused at another gate.
func (l *Ledger) Wipe(ctx context.Context, id, state string) error {
	for p := range l.keys {
		if err := l.WipePartition(ctx, p, id, state); err != nil {
			return err
		}
	}
	return nil
}

// WipePartition is Wipe for one partition.
func (l *Ledger) WipePartition(ctx context.Context, p int, id, state string) error {
	gone, err := l.stored(ctx, p)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(gone, adoptValues) {
		word, err := wipeScript.Run(ctx, l.client, append([]string{l.keys[p].gate}, some...), state, id).Text()
		if err != nil {
			return redisconn.Classify("wipe", err)
		}
		if word != "done" {
			return fmt.Errorf("%w: wipe partition %d at %s: its gate is %q; `move status` shows the next step", ErrRefused, p, redisconn.Addr(l.client), word)
		}
	}
	return nil
}
