package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// JobSnapshot is every record of one job, read at one instant.
type JobSnapshot struct {
	Entry      ledger.Entry
	Definition jobs.Definition // the zero value when it cannot be read
	Rows       []ledger.Row    // in the order of the history
	Open       []ledger.Run    // of this job: runs in flight, pending ones, and open ticks
	// Complete: every record could be read, including runs in the same partition.
	Complete bool
}

// UnknownFormat is something in the namespace that this version does not understand: written by a
// newer one, or not by a node at all.
type UnknownFormat struct {
	Key  string `json:"key"`
	What string `json:"what"`
	Job  string `json:"-"` // "" where it is not known
	Kind string `json:"-"` // entry, definition, history, row, run or key
}

// Unread are the records that a reading came across and could not read.
type Unread struct {
	UnknownFormat []UnknownFormat
	// Unverified are the jobs, by name, that cannot be checked, because their entry, their
	// definition or their history cannot be read.
	Unverified []string
	Jobs       int64 // how many there are, read or not
}

// EachJob hands the books of every job, or of one, to f: partition by partition, in the order of
// names, each read at one instant. A job whose entry or history cannot be read is left out, and
// named in Unread. It works on a live ledger and writes nothing. It returns ErrUnknownJob when name
// is not "" and there is no such job.
func EachJob(ctx context.Context, l *ledger.Ledger, name string, f func(JobSnapshot)) (Unread, error) {
	var u Unread
	for p, k := range l.Keys {
		if name != "" && p != l.Partition(name) {
			continue
		}
		names := []string{name}
		if name == "" {
			var err error
			if names, err = l.Client.HKeys(ctx, k.Jobs).Result(); err != nil {
				return u, l.Explain(ctx, "verify", err)
			}
			slices.Sort(names)
		}
		for part := range slices.Chunk(names, ledger.PageMax) {
			page, err := ReadPage(ctx, l, p, part, nil)
			if err != nil {
				return u, err
			}
			if name != "" && page.Entry(0) == nil {
				return u, fmt.Errorf("verify: %w: %q in namespace %s; `jobs list` shows what there is", ledger.ErrUnknownJob, name, l.Config.Namespace)
			}
			page.read(&u, f)
		}
	}
	slices.Sort(u.Unverified)
	return u, nil
}

// Page has all records of some jobs of a partition, as of one instant.
type Page struct {
	Keys          ledger.Keys
	names         []string
	entries       *redis.SliceCmd
	Defs          map[string]string // by digest; they do not change, so they need not be read at the same instant
	Runs, Waiting *redis.MapStringStringCmd
	Rows          []*redis.StringSliceCmd
}

// ReadPage reads jobs of a partition, and at the same instant the results that more queues.
func ReadPage(ctx context.Context, l *ledger.Ledger, part int, names []string, more func(redis.Pipeliner)) (*Page, error) {
	k := l.Keys[part]
	g := &Page{Keys: k, names: names, Defs: make(map[string]string, len(names)), Rows: make([]*redis.StringSliceCmd, len(names))}
	err := redisconn.TxPipelined(ctx, l.Client, func(p redis.Pipeliner) error {
		g.entries = p.HMGet(ctx, k.Jobs, names...)
		g.Runs, g.Waiting = p.HGetAll(ctx, k.Runs), p.HGetAll(ctx, k.Waiting)
		for i, name := range names {
			g.Rows[i] = p.LRange(ctx, k.History+name, 0, -1)
		}
		if more != nil {
			more(p)
		}
		return nil
	})
	switch first := cmp.Or(g.entries.Err(), g.Runs.Err(), g.Waiting.Err()); {
	case first == nil && ledger.IsReply(err): // a history or another record of the wrong type: its readers report that
		err = nil
	case first != nil && !redis.IsExecAbortError(first):
		err = first
	}
	if err == nil {
		var digests []string
		for i, name := range names {
			if e, err := ledger.ParseEntry(name, ledger.Text(g.Entry(i))); err == nil {
				digests = append(digests, e.Digest)
			}
		}
		err = DefinitionsInto(ctx, l, part, digests, g.Defs)
	}
	return g, l.Explain(ctx, "verify", err)
}

// Entry is the entry of the job at i; nil for a job that is gone.
func (g *Page) Entry(i int) any { return g.entries.Val()[i] }

// read hands the jobs of a page to f.
func (g *Page) read(u *Unread, f func(JobSnapshot)) {
	open := OpenRuns(g.Runs.Val(), nil, u.unreadable(g.Keys.Runs))
	open = append(open, OpenRuns(nil, g.Waiting.Val(), u.unreadable(g.Keys.Waiting))...)
	byJob := make(map[string][]ledger.Run)
	for _, l := range open {
		byJob[l.Job] = append(byJob[l.Job], l)
	}
	allRuns := len(open) == len(g.Runs.Val())+len(g.Waiting.Val())
	for i, name := range g.names {
		if g.Entry(i) == nil {
			continue // removed since
		}
		u.Jobs++
		e, err := ledger.ParseEntry(name, ledger.Text(g.Entry(i)))
		if err != nil {
			u.markUnverified(g.Keys.Jobs, name, "entry", fmt.Errorf("entry of %s: %w", name, err))
			continue
		}
		if err := g.Rows[i].Err(); err != nil {
			u.markUnverified(g.Keys.History+name, name, "history", fmt.Errorf("history of %s: %w", name, err))
			continue
		}
		def, err := jobs.ParseDefinition([]byte(g.Defs[e.Digest]))
		if err != nil {
			u.markUnverified(g.Keys.Defs, name, "definition", fmt.Errorf("definition of %s: %w", name, err))
			def = jobs.Definition{}
		}
		rows := u.parse(g.Keys.History+name, name, g.Rows[i].Val())
		f(JobSnapshot{Entry: e, Definition: def, Rows: rows, Open: byJob[name], Complete: allRuns && len(rows) == len(g.Rows[i].Val())})
	}
}

// leave notes an unreadable record, and that the job can therefore not be verified.
func (u *Unread) markUnverified(key, job, kind string, err error) {
	u.UnknownFormat = append(u.UnknownFormat, UnknownFormat{Key: key, What: err.Error(), Job: job, Kind: kind})
	u.Unverified = append(u.Unverified, job)
}

// parse reads the rows of a job.
func (u *Unread) parse(key, job string, records []string) []ledger.Row {
	rows := make([]ledger.Row, 0, len(records))
	for i, record := range records {
		row, err := ledger.ParseRow(job, record)
		if err != nil {
			u.UnknownFormat = append(u.UnknownFormat, UnknownFormat{Key: key, What: fmt.Sprintf("row %d of %s: %v", i+1, job, err), Job: job, Kind: "row"})
			continue
		}
		rows = append(rows, row)
	}
	return rows
}

// unreadable notes records of runs that cannot be read, once, though every page of a partition has
// them.
func (u *Unread) unreadable(key string) func(error) {
	return func(err error) {
		left := UnknownFormat{Key: key, What: err.Error(), Kind: "run"}
		if !slices.Contains(u.UnknownFormat, left) {
			u.UnknownFormat = append(u.UnknownFormat, left)
		}
	}
}

// OpenRuns parses the records of runs in flight, leased ones first, each kind by run id.
func OpenRuns(runs, waiting map[string]string, bad func(error)) []ledger.Run {
	var open []ledger.Run
	read := func(what string, records map[string]string, parse func(run, record string) (ledger.Run, error)) {
		for _, id := range slices.Sorted(maps.Keys(records)) {
			lease, err := parse(id, records[id])
			if err != nil {
				bad(fmt.Errorf("%s %s: %w", what, id, err))
				continue
			}
			open = append(open, lease)
		}
	}
	read("run", runs, ledger.ParseRun)
	read("pending run", waiting, ledger.ParsePending)
	return open
}
