package export

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// travels has the parts of a document that are no part of a job's snapshot. It is read at the same
// instant.
type travels struct {
	cancels, joins    *redis.MapStringStringCmd
	pauses, followers *redis.SliceCmd
	backfills, ended  *redis.SliceCmd
	pending, outbox   *redis.ZSliceCmd
	due               []*redis.FloatCmd
	kept              *redis.IntCmd
}

func (t *travels) queue(ctx context.Context, p redis.Pipeliner, k ledger.Keys, names []string) {
	t.cancels, t.joins, t.kept = p.HGetAll(ctx, k.Cancels), p.HGetAll(ctx, k.Joins), p.HLen(ctx, k.Kept)
	t.pauses, t.followers = p.HMGet(ctx, k.Pauses, names...), p.HMGet(ctx, k.Followers, names...)
	t.backfills, t.ended = p.HMGet(ctx, k.Backfills, names...), p.HMGet(ctx, k.Backfilled, names...)
	t.pending, t.outbox = p.ZRangeWithScores(ctx, k.Pending, 0, -1), p.ZRangeWithScores(ctx, k.Outbox, 0, -1)
	for _, name := range names {
		t.due = append(t.due, p.ZScore(ctx, k.Due, name))
	}
}

// err is the first error, except a job that is not due.
func (t *travels) err() error {
	return cmp.Or(t.cancels.Err(), t.joins.Err(), t.kept.Err(), t.pauses.Err(), t.followers.Err(), t.backfills.Err(), t.ended.Err(), t.pending.Err(), t.outbox.Err())
}

// page exports some jobs of a partition.
func (x *exporter) page(ctx context.Context, p int, names []string) error {
	t := new(travels)
	g, err := query.ReadPage(ctx, x.l, p, names, func(pipe redis.Pipeliner) { t.queue(ctx, pipe, x.l.Keys[p], names) })
	if err = cmp.Or(err, t.err()); err != nil {
		return err
	}
	docs := make(map[string]*Document, len(names))
	for i, name := range names {
		d := &Document{Job: name, Pause: Text(ledger.Text(t.pauses.Val()[i])), Followers: Text(ledger.Text(t.followers.Val()[i])),
			Backfill: Text(ledger.Text(t.backfills.Val()[i])), Backfilled: Text(ledger.Text(t.ended.Val()[i]))}
		if x.entry(d, g, i, t.due[i]) {
			docs[name] = d
		}
	}
	x.runs(docs, g, t)
	for field, value := range t.joins.Val() {
		job, _, _ := strings.Cut(field, "|")
		if d := docs[job]; d != nil {
			put(&d.Joins, field, Text(value))
		}
	}
	for _, z := range t.outbox.Val() {
		if e, err := ledger.ParseEvent(ledger.Member(z)); err != nil {
			x.unreadable(g.Keys.Outbox, "row")(fmt.Errorf("event %.40q: %w", ledger.Member(z), err))
		} else if d := docs[e.Upstream]; d != nil {
			d.Events = append(d.Events, Outgoing{Text(ledger.Member(z)), int64(z.Score)})
		}
	}
	for _, name := range names {
		d := docs[name]
		if d == nil {
			continue
		}
		if err := x.announced(ctx, p, d); err != nil {
			return err
		}
		if err := x.kept(ctx, p, d, t.kept.Val() > 0); err != nil {
			return err
		}
		if err := x.sink(*d); err != nil {
			return err
		}
	}
	return nil
}

// entry adds the entry, the definition and the history of the job at i. It reports false for a job
// that cannot be exported.
func (x *exporter) entry(d *Document, g *query.Page, i int, due *redis.FloatCmd) bool {
	if err := g.Rows[i].Err(); err != nil {
		x.leave(query.UnknownFormat{Key: g.Keys.History + d.Job, What: fmt.Sprintf("history of %s: %v", d.Job, err), Job: d.Job, Kind: "history"})
		return false
	}
	for _, row := range g.Rows[i].Val() {
		d.History = append(d.History, Text(row))
	}
	if g.Entry(i) == nil {
		return true
	}
	record := ledger.Text(g.Entry(i))
	e, err := ledger.ParseEntry(d.Job, record)
	if err != nil {
		x.leave(query.UnknownFormat{Key: g.Keys.Jobs, What: fmt.Sprintf("entry of %s: %v", d.Job, err), Job: d.Job, Kind: "entry"})
		return false
	}
	d.Entry, d.Due = Text(withoutServer(record)), due.Err() == nil && e.Cursor != 0
	if def, known := g.Defs[e.Digest]; known {
		d.Definitions = map[string]Text{e.Digest: Text(def)}
	}
	return true
}

// runs adds the runs in flight, the pending runs and their cancel flags.
func (x *exporter) runs(docs map[string]*Document, g *query.Page, t *travels) {
	starts := make(map[string]*int64)
	for _, z := range t.pending.Val() {
		at := int64(z.Score)
		starts[ledger.Member(z)] = &at
	}
	for _, l := range slices.Concat(query.OpenRuns(g.Runs.Val(), nil, x.unreadable(g.Keys.Runs, "run")), query.OpenRuns(nil, g.Waiting.Val(), x.unreadable(g.Keys.Waiting, "run"))) {
		d := docs[l.Job]
		if d == nil {
			continue
		}
		if record, going := g.Runs.Val()[l.ID]; going {
			put(&d.Running, l.ID, Text(record))
		} else {
			put(&d.Waiting, l.ID, Waiting{Text(g.Waiting.Val()[l.ID]), starts[l.ID]})
		}
		if flag, wanted := t.cancels.Val()[l.ID]; wanted {
			put(&d.Cancels, l.ID, Text(flag))
		}
		x.owns(d, l.ID, l.Request)
	}
}

// withoutServer is an entry without the id of the server that gave the token.
func withoutServer(record string) string {
	f := strings.SplitN(record, "|", 7)
	f[5] = ""
	return strings.Join(f, "|")
}

func put[V any](m *map[string]V, key string, value V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[key] = value
}

// owns moves the unique keys of a job's runs into its document.
func (x *exporter) owns(d *Document, ids ...string) {
	unique := x.parts[x.l.Partition(d.Job)].unique
	for _, id := range ids {
		if until, known := unique[id]; known {
			put(&d.Unique, id, until)
			delete(unique, id)
		}
	}
}

// announced adds the definitions that nodes announced.
func (x *exporter) announced(ctx context.Context, p int, d *Document) error {
	all := x.parts[p].announced[d.Job]
	slices.SortFunc(all, func(a, b define.Announced) int {
		return cmp.Or(strings.Compare(a.Generation, b.Generation), strings.Compare(a.Digest, b.Digest))
	})
	var digests []string
	for _, a := range all {
		d.Held = append(d.Held, HeldDefinition{a.Digest, a.Generation, a.Revision, a.Since, a.Seen})
		if _, known := d.Definitions[a.Digest]; !known {
			digests = append(digests, a.Digest)
		}
	}
	if len(digests) == 0 {
		return nil
	}
	defs := make(map[string]string, len(digests))
	err := query.DefinitionsInto(ctx, x.l, p, digests, defs)
	for digest, def := range defs {
		put(&d.Definitions, digest, Text(def))
	}
	return err
}

// kept adds the outputs and payloads of the history's rows.
func (x *exporter) kept(ctx context.Context, p int, d *Document, outputs bool) error {
	var fields []string
	for _, record := range d.History {
		if row, err := ledger.ParseRow(d.Job, string(record)); err == nil && row.Run != "" {
			x.owns(d, row.Run, row.Request)
			fields = append(fields, row.Run, "p:"+row.Run, ledger.SavedField+row.Run, ledger.ProgressField+row.Run)
		}
	}
	for run := range d.Running {
		fields = append(fields, ledger.SavedField+run)
	}
	if !outputs || len(fields) == 0 {
		return nil
	}
	got, err := x.l.Client.HMGet(ctx, x.l.Keys[p].Kept, fields...).Result()
	for i, value := range got {
		if value != nil {
			put(&d.Kept, fields[i], Text(ledger.Text(value)))
		}
	}
	return err
}
