// Package export takes a namespace to another Redis or into a backup: documents of its jobs,
// written and read, and the steps of a move in control records and gates.
package export

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/define"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
)

// One reading takes at most so many jobs, or jobs with so many rows: a server answers it at one
// instant. Each reading also takes all pending runs of the partition, so it takes more jobs where
// these are many.
const (
	exportJobs = 200
	exportRows = 20_000
)

// Documents gives every job to sink as a document, each as of one instant, and last the unique keys
// whose job is unknown. A job comes after its upstreams, so its document has every event that their
// documents no longer have. (A job that begins to follow another one meanwhile may come before it.)
// For a namespace without changes all documents are of one instant. left are the records that this
// version cannot read and no document holds. Export ends at sink's first error.
func Documents(ctx context.Context, l *ledger.Ledger, sink func(Document) error) (left []query.UnknownFormat, err error) {
	x := &exporter{l: l, sink: sink, parts: make([]exportPart, len(l.Keys))}
	if err := x.run(ctx); err != nil {
		return x.left, redisconn.Classify("export "+l.Config.Namespace+" at "+redisconn.Addr(l.Client), err)
	}
	return x.left, nil
}

// exporter is one reading of a ledger.
type exporter struct {
	l     *ledger.Ledger
	sink  func(Document) error
	parts []exportPart
	left  []query.UnknownFormat
}

// exportPart is the part of an export that is read of a partition before its jobs.
type exportPart struct {
	names     map[string]bool // of all jobs with any record
	announced map[string][]define.Announced
	followers map[string]string
	unique    map[string]int64 // unique keys that no document holds yet
	waiting   int              // bytes of the pending runs
}

func (x *exporter) run(ctx context.Context) error {
	for p := range x.parts {
		if err := x.survey(ctx, p); err != nil {
			return err
		}
	}
	for _, names := range x.inOrder() {
		for p, of := range names {
			if err := x.jobs(ctx, p, of); err != nil {
				return err
			}
		}
	}
	for p, part := range x.parts {
		if len(part.unique) > 0 {
			if err := x.sink(Document{Unique: part.unique, Part: p}); err != nil {
				return err
			}
		}
	}
	return nil
}

// survey reads the names of a partition's jobs, and its unique keys. The keys are read before the
// jobs: with a key younger than its job's document, a restored namespace would wait for a run it
// does not have.
func (x *exporter) survey(ctx context.Context, p int) error {
	k, part := x.l.Keys[p], &x.parts[p]
	var names *redis.StringSliceCmd
	var waiting, followers *redis.MapStringStringCmd
	var unique, outbox *redis.ZSliceCmd
	_, err := x.l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		names, waiting, followers = p.HKeys(ctx, k.Jobs), p.HGetAll(ctx, k.Waiting), p.HGetAll(ctx, k.Followers)
		unique, outbox = p.ZRangeWithScores(ctx, k.Unique, 0, -1), p.ZRangeWithScores(ctx, k.Outbox, 0, -1)
		return nil
	})
	if err != nil {
		return err
	}
	announced, err := define.AnnouncedIn(ctx, x.l, p)
	if err != nil {
		return err
	}
	*part = exportPart{names: make(map[string]bool), announced: make(map[string][]define.Announced), followers: followers.Val(), unique: make(map[string]int64)}
	for _, name := range slices.Concat(names.Val(), slices.Collect(maps.Keys(part.followers))) {
		part.names[name] = true
	}
	for _, a := range announced {
		part.names[a.Job] = true
		part.announced[a.Job] = append(part.announced[a.Job], a)
	}
	for _, record := range waiting.Val() {
		part.waiting += len(record)
	}
	for _, l := range query.OpenRuns(nil, waiting.Val(), x.unreadable(k.Waiting, "run")) {
		part.names[l.Job] = true
	}
	for _, z := range outbox.Val() {
		if e, err := ledger.ParseEvent(ledger.Member(z)); err != nil {
			x.unreadable(k.Outbox, "row")(fmt.Errorf("event %.40q: %w", ledger.Member(z), err))
		} else {
			part.names[e.Upstream] = true
		}
	}
	for _, z := range unique.Val() {
		part.unique[ledger.Member(z)] = int64(z.Score)
	}
	return nil
}

// unreadable notes what cannot be read, once.
func (x *exporter) unreadable(key, kind string) func(error) {
	return func(err error) { x.leave(query.UnknownFormat{Key: key, What: err.Error(), Kind: kind}) }
}

func (x *exporter) leave(u query.UnknownFormat) {
	if !slices.Contains(x.left, u) {
		x.left = append(x.left, u)
	}
}

// inOrder are the names of all jobs by partition: first the jobs without upstreams, then jobs that
// follow only these, and so on.
func (x *exporter) inOrder() (levels [][][]string) {
	waits, left := make(map[string]int), make(map[string]int) // by job: how many of its upstreams are left; and its partition
	for p, part := range x.parts {
		for name := range part.names {
			left[name] = p
		}
		for _, names := range part.followers {
			for name := range strings.SplitSeq(names, ",") {
				waits[name]++
			}
		}
	}
	level := slices.DeleteFunc(slices.Collect(maps.Keys(left)), func(name string) bool { return waits[name] > 0 })
	for len(left) > 0 {
		if len(level) == 0 {
			level = slices.Collect(maps.Keys(left)) // the jobs follow each other, or a job that is gone
		}
		byPart := make([][]string, len(x.parts))
		var next []string
		for _, name := range slices.Sorted(slices.Values(level)) {
			p, is := left[name]
			if !is {
				continue
			}
			delete(left, name)
			byPart[p] = append(byPart[p], name)
			for follower := range strings.SplitSeq(x.parts[p].followers[name], ",") {
				if waits[follower]--; waits[follower] == 0 {
					next = append(next, follower)
				}
			}
		}
		level, levels = slices.DeleteFunc(next, func(name string) bool { _, is := left[name]; return !is }), append(levels, byPart)
	}
	return levels
}

// jobs exports jobs of a partition, as many at an instant as have few enough rows.
func (x *exporter) jobs(ctx context.Context, p int, names []string) error {
	waiting := x.parts[p].waiting
	mostJobs, mostRows := max(exportJobs, waiting/2000), int64(max(exportRows, waiting/200))
	for some := range slices.Chunk(names, mostJobs) {
		rows, err := ledger.Queue(ctx, x.l, some, func(pipe redis.Pipeliner, name string) *redis.IntCmd {
			return pipe.LLen(ctx, x.l.Keys[p].History+name)
		})
		if err != nil && !ledger.IsReply(err) {
			return err
		}
		for first, sum, i := 0, int64(0), 0; i < len(some); i++ {
			sum += rows[i].Val()
			if i == len(some)-1 || sum+rows[i+1].Val() > mostRows {
				if err := x.page(ctx, p, some[first:i+1]); err != nil {
					return err
				}
				first, sum = i+1, 0
			}
		}
	}
	return nil
}
