package ledger

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// Documents go over in batches of so many, or of about so many bytes.
const (
	importDocuments = 64
	importBytes     = 1 << 20
)

// Importer writes documents into a namespace, from a move or a backup. Close it with Flush. It is
// not safe for concurrent use.
type Importer struct {
	l       *Ledger
	move    string // "" for a backup
	copy    int64
	sources int // partitions of the namespace that the documents are from

	batch  []write
	bytes  int
	held   []holders // by partition
	exists []string
}

// write is one call of the import script.
type write struct {
	job  string
	bare bool // without an entry
	part int
	keys []string
	args []any
}

// Fill begins a copy of a move, of this number, higher than any before, and empties the partitions.
// The documents are from a namespace of so many partitions. From then on nothing is written of a
// copy before it. It returns ErrRefused when the move does not fill the namespace, or when a later
// copy has begun.
func (l *Ledger) Fill(ctx context.Context, id string, number int64, sources int) (*Importer, error) {
	for p := range l.keys {
		if err := l.BeginCopy(ctx, p, id, number); err != nil {
			return nil, err
		}
		if err := l.wipe(ctx, p, id, gateFilling, ms(number)); err != nil {
			return nil, err
		}
	}
	return &Importer{l: l, move: id, copy: number, sources: sources, held: make([]holders, len(l.keys))}, nil
}

// Importer begins to write documents of a backup, from a namespace of so many partitions. Jobs that
// are there stay as they are. Of the definitions, only the current ones are written: nodes announce
// what they hold by themselves.
func (l *Ledger) Importer(sources int) *Importer {
	return &Importer{l: l, sources: sources, held: make([]holders, len(l.keys))}
}

// BeginCopy sees to it that nothing is written any more in a partition of copies before this
// number.
func (l *Ledger) BeginCopy(ctx context.Context, p int, id string, number int64) error {
	op := fmt.Sprintf("begin copy %d in partition %d at %s", number, p, redisconn.Addr(l.client))
	word, err := copyScript.Run(ctx, l.client, []string{l.keys[p].gate}, id, ms(number)).Text()
	if err != nil {
		return redisconn.Classify(op, err)
	}
	return importRefusal(op, word)
}

// importRefusal is the error for a word of copy.lua or import.lua.
func importRefusal(op, word string) error {
	switch word {
	case "done":
		return nil
	case "stale":
		return fmt.Errorf("%w: %s: another copy has begun meanwhile; let one of them end, then run `move copy` again", ErrRefused, op)
	}
	return fmt.Errorf("%w: %s: its gate is %q, so the move does not fill it; `move status` shows the next step", ErrRefused, op, word)
}

// Import writes a document, at once or together with the documents after it.
func (i *Importer) Import(ctx context.Context, d Document) error {
	if i.move == "" {
		d = d.alone()
	}
	for p := range i.l.keys {
		if !i.belongs(d, p) {
			continue
		}
		w := i.l.write(p, d)
		if len(w.args) > 0 {
			i.batch = append(i.batch, w)
			i.bytes += size(w)
		}
		i.hold(p, d)
	}
	if len(i.batch) < importDocuments && i.bytes < importBytes {
		return nil
	}
	return i.send(ctx)
}

// belongs reports whether a document belongs into a partition. Unique keys whose job is unknown
// must not be left out: a request would get through a second time. So they go wherever a job of
// their former partition may go: to partitions with the same rest when divided by the greatest
// common divisor of both numbers of partitions. No other partition looks for them.
func (i *Importer) belongs(d Document, p int) bool {
	if d.Job != "" {
		return i.l.Partition(d.Job) == p
	}
	a, b := max(1, i.sources), len(i.l.keys)
	for b != 0 {
		a, b = b, a%b
	}
	return p%a == d.Part%a
}

// write is a document as the import script takes it.
func (l *Ledger) write(p int, d Document) write {
	k := l.keys[p]
	w := write{job: d.Job, bare: d.Entry == "", part: p, keys: []string{k.gate, k.jobs}}
	if len(d.History) > 0 {
		w.do("D", k.history+d.Job)
		w.do("R", k.history+d.Job, values(d.History)...)
		w.do("L", k.recent, movedRows)
	}
	w.hash(k.defs, d.Definitions)
	w.hash(k.kept, d.Kept)
	w.hash(k.cancels, d.Cancels)
	w.hash(k.joins, d.Joins)
	w.hash(k.runs, d.Running)
	for _, run := range slices.Sorted(maps.Keys(d.Running)) {
		if lease, err := parseRun(run, string(d.Running[run])); err == nil {
			w.do("Z", k.leases, ms(lease.Until), run)
		}
	}
	for _, run := range slices.Sorted(maps.Keys(d.Waiting)) {
		w.do("H", k.waiting, run, string(d.Waiting[run].Record))
		if start := d.Waiting[run].Start; start != nil {
			w.do("Z", k.pending, ms(*start), run)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.Unique)) {
		w.do("Z", k.unique, ms(d.Unique[key]), key)
	}
	for _, e := range d.Events {
		w.do("Z", k.outbox, ms(e.Known), string(e.Record))
	}
	for _, of := range []struct {
		key   string
		value Text
	}{{k.pauses, d.Pause}, {k.backfills, d.Backfill}, {k.backfilled, d.Backfilled}, {k.jobs, d.Entry}} {
		if of.value != "" {
			w.do("H", of.key, d.Job, string(of.value))
		}
	}
	if d.Followers != "" {
		w.do("N", k.followers, d.Job, string(d.Followers)) // nodes with followers of a job that does not exist may have added them
	}
	if e, err := parseEntry(d.Job, string(d.Entry)); err == nil && d.Due {
		w.do("Z", k.due, ms(e.Cursor), d.Job)
	}
	return w
}

// do adds something to be done to a key.
func (w *write) do(what, key string, values ...any) {
	at := slices.Index(w.keys, key)
	if at < 0 {
		at = len(w.keys)
		w.keys = append(w.keys, key)
	}
	w.args = append(append(w.args, what, strconv.Itoa(at+1), strconv.Itoa(len(values))), values...)
}

func (w *write) hash(key string, fields map[string]Text) {
	if len(fields) == 0 {
		return
	}
	all := make([]any, 0, 2*len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		all = append(all, name, string(fields[name]))
	}
	w.do("H", key, all...)
}

func values(list []Text) []any {
	all := make([]any, len(list))
	for i, s := range list {
		all[i] = string(s)
	}
	return all
}

func size(w write) (n int) {
	for _, arg := range w.args {
		n += len(text(arg))
	}
	return n
}

// send writes the batch: each document by itself, all or nothing of it.
func (i *Importer) send(ctx context.Context) error {
	batch := i.batch
	i.batch, i.bytes = nil, 0
	if len(batch) == 0 {
		return nil
	}
	cmds := make([]*redis.Cmd, len(batch))
	args := func(w write) []any { return append([]any{w.job, i.move, ms(i.copy)}, w.args...) }
	_, err := i.l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for n, w := range batch {
			cmds[n] = importScript.Queue(ctx, p, w.keys, args(w)...)
		}
		return nil
	})
	for n, w := range batch {
		if redisconn.UnknownScript(cmds[n].Err()) {
			cmds[n] = importScript.Run(ctx, i.l.client, w.keys, args(w)...)
			err = cmds[n].Err()
		}
		op := fmt.Sprintf("write job %q to partition %d at %s", w.job, w.part, redisconn.Addr(i.l.client))
		if err := cmds[n].Err(); err != nil {
			return redisconn.Classify(op, err)
		}
		switch word := text(cmds[n].Val()); {
		case i.move != "" || word == "done":
			if err := importRefusal(op, word); err != nil {
				return err
			}
		case word == "exists" && w.bare: // what waits for a job that is there now is older than what the job has
		case word == "exists":
			i.exists = append(i.exists, w.job)
		default:
			return i.l.refusal(op, w.job, word)
		}
	}
	return redisconn.Classify("write jobs", err)
}

// Flush writes the documents that Import has not written yet. It returns the jobs of a backup that
// existed already.
func (i *Importer) Flush(ctx context.Context) (exists []string, err error) {
	for p, held := range i.held {
		for _, of := range slices.Sorted(maps.Keys(held)) {
			i.batch = append(i.batch, i.l.chunk(p, of, held[of]))
		}
		i.held[p] = nil
	}
	for len(i.batch) > importDocuments {
		rest := i.batch[importDocuments:]
		i.batch = i.batch[:importDocuments]
		if err := i.send(ctx); err != nil {
			return i.exists, err
		}
		i.batch = rest
	}
	err = i.send(ctx)
	return i.exists, err
}
