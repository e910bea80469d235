package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
)

// Scope says which books are examined.
type Scope struct {
	Job   string // "" for all
	Since int64  // ms: leave out what concerns only instants before it; 0: nothing
}

// Examined is what an examination of the books came to.
type Examined struct {
	Violations []Violation
	LeftAlone  []LeftAlone
	// Unverified are the jobs, by name, that could not be checked, because their entry, their definition
	// or their history cannot be read.
	Unverified []string
	// What was checked: ticks are those that were recomputed.
	Jobs, Rows, Ticks int64
}

// LeftAlone is something in the namespace that this version does not understand: written by a newer
// one, or not by a node at all.
type LeftAlone struct {
	Key  string `json:"key"`
	What string `json:"what"`
	job  string
	kind string // entry, definition, history, row, run or key
}

// Examine audits every job, or one, partition by partition, each read at one instant, and looks for
// what it does not understand: records and, of all jobs, keys. It works on a live ledger and writes
// nothing. It returns ErrUnknownJob when there is no job of the scope's name.
func (l *Ledger) Examine(ctx context.Context, scope Scope) (Examined, error) {
	x, err := l.examine(ctx, scope.Job)
	if err == nil && scope.Job == "" {
		var strangers []LeftAlone
		strangers, err = l.strangers(ctx)
		x.LeftAlone = append(x.LeftAlone, strangers...)
	}
	x.Violations = slices.DeleteFunc(x.Violations, func(v Violation) bool { return v.at != 0 && v.at < scope.Since })
	slices.Sort(x.Unverified)
	return x, err
}

// Verify is Examine for those who know that nobody else writes to the namespace: what cannot be read
// is a violation too. Name restricts it to one job, "" takes all. A job whose definition cannot be
// read is checked without its schedule.
func (l *Ledger) Verify(ctx context.Context, name string) ([]Violation, error) {
	x, err := l.examine(ctx, name)
	for _, s := range x.LeftAlone {
		if s.kind != "definition" {
			x.Violations = append(x.Violations, Violation{Job: s.job, Promise: Books, What: s.What, Evidence: []string{s.Key}})
		}
	}
	return x.Violations, err
}

func (l *Ledger) examine(ctx context.Context, name string) (Examined, error) {
	var x Examined
	for p, k := range l.keys {
		if name != "" && p != l.Partition(name) {
			continue
		}
		names := []string{name}
		if name == "" {
			var err error
			if names, err = l.client.HKeys(ctx, k.jobs).Result(); err != nil {
				return x, l.explain(ctx, "verify", err)
			}
			slices.Sort(names)
		}
		for part := range slices.Chunk(names, BatchMax) {
			page, err := l.page(ctx, k, part)
			if err != nil {
				return x, err
			}
			if name != "" && page.entry(0) == nil {
				return x, fmt.Errorf("verify: %w: %q in namespace %s; `jobs list` shows what there is", ErrUnknownJob, name, l.cfg.Namespace)
			}
			page.examine(&x)
		}
	}
	return x, nil
}

// page is some jobs of a partition, all that is stored of them, as of one instant.
type page struct {
	keys          keys
	names         []string
	entries, defs *redis.SliceCmd
	runs, waiting *redis.MapStringStringCmd
	rows          []*redis.StringSliceCmd
}

func (l *Ledger) page(ctx context.Context, k keys, names []string) (*page, error) {
	g := &page{keys: k, names: names, rows: make([]*redis.StringSliceCmd, len(names))}
	_, err := l.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		g.entries, g.defs = p.HMGet(ctx, k.jobs, names...), p.HMGet(ctx, k.defs, names...)
		g.runs, g.waiting = p.HGetAll(ctx, k.runs), p.HGetAll(ctx, k.waiting)
		for i, name := range names {
			g.rows[i] = p.LRange(ctx, k.history+name, 0, -1)
		}
		return nil
	})
	err = cmp.Or(g.entries.Err(), g.defs.Err(), g.runs.Err(), g.waiting.Err(), err)
	var other redis.Error
	if err != nil && errors.As(err, &other) && strings.HasPrefix(err.Error(), "WRONGTYPE") {
		err = cmp.Or(g.entries.Err(), g.defs.Err(), g.runs.Err(), g.waiting.Err()) // a history that is none is said below
	}
	return g, l.explain(ctx, "verify", err)
}

func (g *page) entry(i int) any { return g.entries.Val()[i] }

// examine audits the jobs of a page.
func (g *page) examine(x *Examined) {
	open := openRuns(g.runs.Val(), nil, x.unreadable(g.keys.runs))
	open = append(open, openRuns(nil, g.waiting.Val(), x.unreadable(g.keys.waiting))...)
	for i, name := range g.names {
		if g.entry(i) == nil {
			continue // removed since
		}
		x.Jobs++
		e, err := parseEntry(name, text(g.entry(i)))
		if err != nil {
			x.leave(g.keys.jobs, name, "entry", fmt.Errorf("entry of %s: %w", name, err))
			continue
		}
		if err := g.rows[i].Err(); err != nil {
			x.leave(g.keys.history+name, name, "history", fmt.Errorf("history of %s: %w", name, err))
			continue
		}
		def, err := jobs.ParseDefinition([]byte(text(g.defs.Val()[i])))
		if err != nil {
			x.leave(g.keys.defs, name, "definition", fmt.Errorf("definition of %s: %w", name, err))
			def = jobs.Definition{}
		}
		rows := x.parse(g.keys.history+name, name, g.rows[i].Val())
		whole := len(rows) == len(g.rows[i].Val()) && len(open) == len(g.runs.Val())+len(g.waiting.Val())
		g.audit(x, newAudit(e, def, rows, open), whole)
	}
}

// audit checks one job. Where not all records could be read, what hinges on all of them breaks no
// promise for certain.
func (g *page) audit(x *Examined, a *audit, whole bool) {
	a.all()
	if run := a.entry.Open; run != "" && !slices.ContainsFunc(a.open, func(l Lease) bool { return l.Run == run }) && whole {
		a.add(Books, 0, []shower{a.cursor()}, "the job is held for run %s, and there is no such run", run)
	}
	if !whole {
		for i := range a.found[:a.hinging] {
			v := &a.found[i]
			v.Promise, v.What = Books, v.Promise+" cannot be verified, because some records cannot be read: "+v.What
		}
	}
	x.Rows, x.Ticks = x.Rows+int64(len(a.rows)), x.Ticks+a.ticks
	x.Violations = append(x.Violations, a.found...)
}

// leave notes what cannot be read, and that the job can therefore not be verified.
func (x *Examined) leave(key, job, kind string, err error) {
	x.LeftAlone = append(x.LeftAlone, LeftAlone{Key: key, What: err.Error(), job: job, kind: kind})
	x.Unverified = append(x.Unverified, job)
}

// parse reads the rows of a job.
func (x *Examined) parse(key, job string, records []string) []Row {
	rows := make([]Row, 0, len(records))
	for i, record := range records {
		row, err := parseRow(job, record)
		if err != nil {
			x.LeftAlone = append(x.LeftAlone, LeftAlone{Key: key, What: fmt.Sprintf("row %d of %s: %v", i+1, job, err), job: job, kind: "row"})
			continue
		}
		rows = append(rows, row)
	}
	return rows
}

// unreadable notes records of runs that cannot be read, once, though every page of a partition has them.
func (x *Examined) unreadable(key string) func(string, error) {
	return func(_ string, err error) {
		left := LeftAlone{Key: key, What: err.Error(), kind: "run"}
		if !slices.Contains(x.LeftAlone, left) {
			x.LeftAlone = append(x.LeftAlone, left)
		}
	}
}

// openRuns parses the records of runs in flight, leased ones first, each kind by run id.
func openRuns(runs, waiting map[string]string, bad func(string, error)) []Lease {
	var open []Lease
	for _, id := range slices.Sorted(maps.Keys(runs)) {
		lease, err := parseLease(id, runs[id])
		if err != nil {
			bad("", fmt.Errorf("run %s: %w", id, err))
			continue
		}
		open = append(open, lease)
	}
	for _, id := range slices.Sorted(maps.Keys(waiting)) {
		lease, err := parsePending(id, waiting[id])
		if err != nil {
			bad("", fmt.Errorf("pending run %s: %w", id, err))
			continue
		}
		open = append(open, lease)
	}
	return open
}

// Time asks Redis for its clock and for its run_id ("" when the server hides it); both come in
// one round trip, the clock first. Of a Cluster, it asks the master that has the control record, always the same.
func (l *Ledger) Time(ctx context.Context) (now time.Time, runID string, err error) {
	var clock *redis.TimeCmd
	var info *redis.StringCmd
	server := l.client
	if cluster, yes := l.client.(*redis.ClusterClient); yes {
		if server, err = cluster.MasterForKey(ctx, controlKey(l.cfg.Namespace)); err != nil {
			return time.Time{}, "", l.explain(ctx, "read the clock", err)
		}
	}
	_, err = server.Pipelined(ctx, func(p redis.Pipeliner) error {
		clock, info = p.Time(ctx), p.Info(ctx, "server")
		return nil
	})
	if clock.Err() != nil {
		return time.Time{}, "", l.explain(ctx, "read the clock", err)
	}
	return clock.Val(), runIDOf(info.Val()), nil
}

func runIDOf(info string) string {
	for line := range strings.Lines(info) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "run_id:"); ok {
			return id
		}
	}
	return ""
}
