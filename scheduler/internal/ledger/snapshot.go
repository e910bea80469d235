package ledger

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
)

// JobSnapshot is every record of one job, read at one instant.
type JobSnapshot struct {
	Entry      Entry
	Definition jobs.Definition // the zero value when it cannot be read
	Rows       []Row           // in the order of the history
	Open       []Run           // of this job: runs in flight, pending ones, and open ticks
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
func (l *Ledger) EachJob(ctx context.Context, name string, f func(JobSnapshot)) (Unread, error) {
	var u Unread
	for p, k := range l.keys {
		if name != "" && p != l.Partition(name) {
			continue
		}
		names := []string{name}
		if name == "" {
			var err error
			if names, err = l.client.HKeys(ctx, k.jobs).Result(); err != nil {
				return u, l.explain(ctx, "verify", err)
			}
			slices.Sort(names)
		}
		for part := range slices.Chunk(names, pageMax) {
			page, err := l.page(ctx, p, part, nil)
			if err != nil {
				return u, err
			}
			if name != "" && page.entry(0) == nil {
				return u, fmt.Errorf("verify: %w: %q in namespace %s; `jobs list` shows what there is", ErrUnknownJob, name, l.cfg.Namespace)
			}
			page.read(&u, f)
		}
	}
	slices.Sort(u.Unverified)
	return u, nil
}

// page has all records of some jobs of a partition, as of one instant.
type page struct {
	keys          keys
	names         []string
	entries       *redis.SliceCmd
	defs          map[string]string // by digest; they do not change, so they need not be read at the same instant
	runs, waiting *redis.MapStringStringCmd
	rows          []*redis.StringSliceCmd
}

// page reads jobs of a partition, and at the same instant the results that more queues.
func (l *Ledger) page(ctx context.Context, part int, names []string, more func(redis.Pipeliner)) (*page, error) {
	k := l.keys[part]
	g := &page{keys: k, names: names, defs: make(map[string]string, len(names)), rows: make([]*redis.StringSliceCmd, len(names))}
	err := redisconn.TxPipelined(ctx, l.client, func(p redis.Pipeliner) error {
		g.entries = p.HMGet(ctx, k.jobs, names...)
		g.runs, g.waiting = p.HGetAll(ctx, k.runs), p.HGetAll(ctx, k.waiting)
		for i, name := range names {
			g.rows[i] = p.LRange(ctx, k.history+name, 0, -1)
		}
		if more != nil {
			more(p)
		}
		return nil
	})
	switch first := cmp.Or(g.entries.Err(), g.runs.Err(), g.waiting.Err()); {
	case first == nil && isReply(err): // a history or another record of the wrong type: its readers report that
		err = nil
	case first != nil && !redis.IsExecAbortError(first):
		err = first
	}
	if err == nil {
		var digests []string
		for i, name := range names {
			if e, err := parseEntry(name, text(g.entry(i))); err == nil {
				digests = append(digests, e.Digest)
			}
		}
		err = l.definitions(ctx, part, digests, g.defs)
	}
	return g, l.explain(ctx, "verify", err)
}

func (g *page) entry(i int) any { return g.entries.Val()[i] }

// read hands the jobs of a page to f.
func (g *page) read(u *Unread, f func(JobSnapshot)) {
	open := openRuns(g.runs.Val(), nil, u.unreadable(g.keys.runs))
	open = append(open, openRuns(nil, g.waiting.Val(), u.unreadable(g.keys.waiting))...)
	byJob := make(map[string][]Run)
	for _, l := range open {
		byJob[l.Job] = append(byJob[l.Job], l)
	}
	allRuns := len(open) == len(g.runs.Val())+len(g.waiting.Val())
	for i, name := range g.names {
		if g.entry(i) == nil {
			continue // removed since
		}
		u.Jobs++
		e, err := parseEntry(name, text(g.entry(i)))
		if err != nil {
			u.markUnverified(g.keys.jobs, name, "entry", fmt.Errorf("entry of %s: %w", name, err))
			continue
		}
		if err := g.rows[i].Err(); err != nil {
			u.markUnverified(g.keys.history+name, name, "history", fmt.Errorf("history of %s: %w", name, err))
			continue
		}
		def, err := jobs.ParseDefinition([]byte(g.defs[e.Digest]))
		if err != nil {
			u.markUnverified(g.keys.defs, name, "definition", fmt.Errorf("definition of %s: %w", name, err))
			def = jobs.Definition{}
		}
		rows := u.parse(g.keys.history+name, name, g.rows[i].Val())
		f(JobSnapshot{Entry: e, Definition: def, Rows: rows, Open: byJob[name], Complete: allRuns && len(rows) == len(g.rows[i].Val())})
	}
}

// leave notes an unreadable record, and that the job can therefore not be verified.
func (u *Unread) markUnverified(key, job, kind string, err error) {
	u.UnknownFormat = append(u.UnknownFormat, UnknownFormat{Key: key, What: err.Error(), Job: job, Kind: kind})
	u.Unverified = append(u.Unverified, job)
}

// parse reads the rows of a job.
func (u *Unread) parse(key, job string, records []string) []Row {
	rows := make([]Row, 0, len(records))
	for i, record := range records {
		row, err := parseRow(job, record)
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

// openRuns parses the records of runs in flight, leased ones first, each kind by run id.
func openRuns(runs, waiting map[string]string, bad func(error)) []Run {
	var open []Run
	read := func(what string, records map[string]string, parse func(run, record string) (Run, error)) {
		for _, id := range slices.Sorted(maps.Keys(records)) {
			lease, err := parse(id, records[id])
			if err != nil {
				bad(fmt.Errorf("%s %s: %w", what, id, err))
				continue
			}
			open = append(open, lease)
		}
	}
	read("run", runs, parseRun)
	read("pending run", waiting, parsePending)
	return open
}

// Time reads Redis' clock and id, see Sample.
func (l *Ledger) Time(ctx context.Context) (now time.Time, id string, err error) {
	s, err := l.sampleControl(ctx, nil)
	return s.Now, s.Server, err
}

// serverID is server_id of token.lua, from INFO's sections replication and server.
func serverID(replication, server string) string {
	if field(replication, "role") == "slave" {
		return replica
	}
	return cmp.Or(field(replication, "master_replid"), field(server, "run_id"))
}

// field is a field of INFO's text, "" when absent.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), name+":"); ok {
			return value
		}
	}
	return ""
}
