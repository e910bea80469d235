package export

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

var (
	copyScript   = ledger.Ship("export/copy", nil)
	importScript = ledger.Ship("export/import", nil)
)

// Documents go over in batches of so many, or of about so many bytes.
const (
	importDocuments = 64
	importBytes     = 1 << 20
)

// Importer writes documents into a namespace, from a move or a backup. Close it with Flush. It is
// not safe for concurrent use.
type Importer struct {
	l       *ledger.Ledger
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
func Fill(ctx context.Context, l *ledger.Ledger, id string, number int64, sources int) (*Importer, error) {
	for p := range l.Keys {
		if err := BeginCopy(ctx, l, p, id, number); err != nil {
			return nil, err
		}
		if err := WipePartition(ctx, l, p, id, ledger.GateFilling, ledger.Spell(number)); err != nil {
			return nil, err
		}
	}
	return &Importer{l: l, move: id, copy: number, sources: sources, held: make([]holders, len(l.Keys))}, nil
}

// NewImporter begins to write documents of a backup, from a namespace of so many partitions. Jobs that
// are there stay as they are. Of the definitions, only the current ones are written: nodes announce
// what they hold by themselves.
func NewImporter(l *ledger.Ledger, sources int) *Importer {
	return &Importer{l: l, sources: sources, held: make([]holders, len(l.Keys))}
}

// Import writes a document, at once or together with the documents after it.
func (i *Importer) Import(ctx context.Context, d Document) error {
	if i.move == "" {
		d = d.alone()
	}
	for p := range i.l.Keys {
		if !i.belongs(d, p) {
			continue
		}
		w := writeOf(i.l, p, d)
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
	a, b := max(1, i.sources), len(i.l.Keys)
	for b != 0 {
		a, b = b, a%b
	}
	return p%a == d.Part%a
}

// writeOf is a document as the import script takes it.
func writeOf(l *ledger.Ledger, p int, d Document) write {
	k := l.Keys[p]
	w := write{job: d.Job, bare: d.Entry == "", part: p, keys: []string{k.Gate, k.Jobs}}
	if len(d.History) > 0 {
		w.do("D", k.History+d.Job)
		w.do("R", k.History+d.Job, values(d.History)...)
		w.do("L", k.Recent, query.MovedRows)
	}
	w.hash(k.Defs, d.Definitions)
	w.hash(k.Kept, d.Kept)
	w.hash(k.Cancels, d.Cancels)
	w.hash(k.Joins, d.Joins)
	w.hash(k.Runs, d.Running)
	for _, run := range slices.Sorted(maps.Keys(d.Running)) {
		if lease, err := ledger.ParseRun(run, string(d.Running[run])); err == nil {
			w.do("Z", k.Leases, ledger.Spell(lease.Until), run)
		}
	}
	for _, run := range slices.Sorted(maps.Keys(d.Waiting)) {
		w.do("H", k.Waiting, run, string(d.Waiting[run].Record))
		if start := d.Waiting[run].Start; start != nil {
			w.do("Z", k.Pending, ledger.Spell(*start), run)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(d.Unique)) {
		w.do("Z", k.Unique, ledger.Spell(d.Unique[key]), key)
	}
	for _, e := range d.Events {
		w.do("Z", k.Outbox, ledger.Spell(e.Known), string(e.Record))
	}
	for _, of := range []struct {
		key   string
		value Text
	}{{k.Pauses, d.Pause}, {k.Backfills, d.Backfill}, {k.Backfilled, d.Backfilled}, {k.Jobs, d.Entry}} {
		if of.value != "" {
			w.do("H", of.key, d.Job, string(of.value))
		}
	}
	if d.Followers != "" {
		w.do("N", k.Followers, d.Job, string(d.Followers)) // nodes with followers of a job that does not exist may have added them
	}
	if e, err := ledger.ParseEntry(d.Job, string(d.Entry)); err == nil && d.Due {
		w.do("Z", k.Due, ledger.Spell(e.Cursor), d.Job)
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
		n += len(ledger.Text(arg))
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
	args := func(w write) []any { return append([]any{w.job, i.move, ledger.Spell(i.copy)}, w.args...) }
	cmds, err := ledger.Queue(ctx, i.l, batch, func(p redis.Pipeliner, w write) *redis.Cmd { return importScript.Queue(ctx, p, w.keys, args(w)...) })
	for n, w := range batch {
		if redisconn.UnknownScript(cmds[n].Err()) {
			cmds[n] = importScript.Run(ctx, i.l.Client, w.keys, args(w)...)
			err = cmds[n].Err()
		}
		op := fmt.Sprintf("write job %q to partition %d at %s", w.job, w.part, redisconn.Addr(i.l.Client))
		if err := cmds[n].Err(); err != nil {
			return redisconn.Classify(op, err)
		}
		switch word := ledger.Text(cmds[n].Val()); {
		case i.move != "" || word == "done":
			if err := importRefusal(op, word); err != nil {
				return err
			}
		case word == "exists" && w.bare: // what waits for a job that is there now is older than what the job has
		case word == "exists":
			i.exists = append(i.exists, w.job)
		default:
			return i.l.Refusal(op, w.job, word)
		}
	}
	return redisconn.Classify("write jobs", err)
}

// Flush writes the documents that Import has not written yet. It returns the jobs of a backup that
// existed already.
func (i *Importer) Flush(ctx context.Context) (exists []string, err error) {
	for p, held := range i.held {
		for _, of := range slices.Sorted(maps.Keys(held)) {
			i.batch = append(i.batch, chunk(i.l, p, of, held[of]))
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

// holders are the definitions to announce in a partition, by their nodes and time:
// generation|revision|since.
type holders map[string]*holder

type holder struct {
	jobs map[string]string
	seen int64
}

// hold takes up which definitions of a job nodes announced. They become chunks, one for the jobs
// that the same nodes held.
func (i *Importer) hold(p int, d Document) {
	for _, h := range d.Held {
		if i.held[p] == nil {
			i.held[p] = make(holders)
		}
		of := h.Generation + "|" + h.Revision + "|" + ledger.Spell(h.Since)
		into := i.held[p][of]
		if into != nil && (into.jobs[d.Job] != "" || len(into.jobs) == define.ChunkJobs) {
			i.batch = append(i.batch, chunk(i.l, p, of, into))
			into = nil
		}
		if into == nil {
			into = &holder{jobs: make(map[string]string)}
			i.held[p][of] = into
		}
		into.jobs[d.Job], into.seen = h.Digest, max(into.seen, h.Seen)
	}
}

// chunk writes a chunk and its announcement.
func chunk(l *ledger.Ledger, p int, of string, h *holder) write {
	at := strings.LastIndexByte(of, '|')
	text := define.ChunkText(h.jobs)
	digest := define.ChunkDigest(text)
	k := l.Keys[p]
	w := write{part: p, keys: []string{k.Gate, k.Jobs}}
	w.do("H", k.Chunks, digest, "1|"+of[at+1:]+"|"+text)
	w.do("Z", k.Announced, ledger.Spell(h.seen), digest+"|"+of[:at])
	return w
}
