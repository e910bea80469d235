// Package query reads what a namespace holds, for nodes, tools and judges: jobs, runs in flight,
// histories, recent rows, records by job as of one instant, records of unknown format, and the overdue
// work for a node's sweep. It writes nothing.
package query

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

// Stored is a job as the ledger has it: its entry and its definition's JSON.
type Stored struct {
	ledger.Entry
	Definition []byte
	Err        error // wraps ErrUnknownFormat when the entry cannot be read; the other fields are then empty
}

// Jobs reads all jobs of the namespace, by name. With an UnreachableError, the other partitions'
// jobs are returned too.
func Jobs(ctx context.Context, l *ledger.Ledger) ([]Stored, error) { return JobsIn(ctx, l, l.All()) }

// JobsIn is Jobs for some partitions.
func JobsIn(ctx context.Context, l *ledger.Ledger, parts []int) ([]Stored, error) {
	return listed(ctx, l, parts, true)
}

// Entries is Jobs without the definitions.
func Entries(ctx context.Context, l *ledger.Ledger) ([]Stored, error) {
	return listed(ctx, l, l.All(), false)
}

func listed(ctx context.Context, l *ledger.Ledger, parts []int, defined bool) ([]Stored, error) {
	var mu sync.Mutex
	var all []Stored
	err := l.EachReachable(ctx, l.QueueTimeout(ctx), "list jobs", parts, func(ctx context.Context, parts []int) error {
		some, err := jobsIn(ctx, l, parts, defined)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, some...)
		return err
	})
	if err != nil && !errors.As(err, new(*ledger.UnreachableError)) {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Stored) int { return strings.Compare(a.Job, b.Job) })
	return all, err
}

// jobsIn reads the jobs of some partitions.
func jobsIn(ctx context.Context, l *ledger.Ledger, parts []int, defined bool) (all []Stored, err error) {
	entries, err := ledger.Queue(ctx, l, parts, func(p redis.Pipeliner, part int) *redis.MapStringStringCmd {
		return p.HGetAll(ctx, l.Keys[part].Jobs)
	})
	if err != nil {
		return nil, err
	}
	for i, part := range parts {
		some := make([]Stored, 0, len(entries[i].Val()))
		for job, record := range entries[i].Val() {
			some = append(some, stored(job, record))
		}
		if defined {
			if err := fillDefinitions(ctx, l, part, some); err != nil {
				return nil, err
			}
		}
		all = append(all, some...)
	}
	return all, nil
}

// fillDefinitions fills in the definitions of jobs of one partition.
func fillDefinitions(ctx context.Context, l *ledger.Ledger, part int, some []Stored) error {
	digests, defs := make([]string, 0, len(some)), make(map[string]string, len(some))
	for _, s := range some {
		if s.Err == nil {
			digests = append(digests, s.Digest)
		}
	}
	err := DefinitionsInto(ctx, l, part, digests, defs)
	for i := range some {
		if some[i].Err == nil {
			some[i].Definition = []byte(defs[some[i].Digest])
		}
	}
	return err
}

// stored is a job without its definition.
func stored(job, record string) Stored {
	e, err := ledger.ParseEntry(job, record)
	if err != nil {
		return Stored{Entry: ledger.Entry{Job: job}, Err: fmt.Errorf("entry of %s: %w", job, err)}
	}
	return Stored{Entry: e}
}

// Count counts the jobs of the namespace, and names the partitions with jobs. With an
// UnreachableError, the other partitions' results are returned too.
func Count(ctx context.Context, l *ledger.Ledger) (jobs int, parts []int, err error) {
	counts := make([]*redis.IntCmd, len(l.Keys))
	err = l.EachReachable(ctx, l.QueueTimeout(ctx), "count jobs", l.All(), func(ctx context.Context, parts []int) error {
		_, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, part := range parts {
				counts[part] = p.HLen(ctx, l.Keys[part].Jobs)
			}
			return nil
		})
		return err
	})
	for part, n := range counts {
		if n != nil && n.Val() > 0 {
			jobs, parts = jobs+int(n.Val()), append(parts, part)
		}
	}
	return jobs, parts, err
}

// Names reads the names of the jobs of some partitions, in no order. With an UnreachableError, the
// other partitions' names are returned too.
func Names(ctx context.Context, l *ledger.Ledger, parts []int) (names []string, err error) {
	found := make([]*redis.StringSliceCmd, len(l.Keys))
	err = l.EachReachable(ctx, l.QueueTimeout(ctx), "list the names of jobs", parts, func(ctx context.Context, parts []int) error {
		_, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, part := range parts {
				found[part] = p.HKeys(ctx, l.Keys[part].Jobs)
			}
			return nil
		})
		return err
	})
	for _, some := range found {
		if some != nil {
			names = append(names, some.Val()...)
		}
	}
	return names, err
}

// Named reads those jobs that are there of the named ones, by name.
func Named(ctx context.Context, l *ledger.Ledger, names []string) ([]Stored, error) {
	return named(ctx, l, names, true)
}

// NamedEntries is Named without the definitions.
func NamedEntries(ctx context.Context, l *ledger.Ledger, names []string) ([]Stored, error) {
	return named(ctx, l, names, false)
}

func named(ctx context.Context, l *ledger.Ledger, names []string, defined bool) (all []Stored, err error) {
	for part, places := range l.ByPartition(len(names), func(i int) string { return names[i] }) {
		for at := range slices.Chunk(places, readMax) {
			fields := make([]string, len(at))
			for i, place := range at {
				fields[i] = names[place]
			}
			records, err := l.Client.HMGet(ctx, l.Keys[part].Jobs, fields...).Result()
			if err != nil {
				return nil, l.Explain(ctx, "read jobs", err)
			}
			some := make([]Stored, 0, len(fields))
			for i, record := range records {
				if record != nil {
					some = append(some, stored(fields[i], ledger.Text(record)))
				}
			}
			if defined {
				if err := fillDefinitions(ctx, l, part, some); err != nil {
					return nil, l.Explain(ctx, "read jobs", err)
				}
			}
			all = append(all, some...)
		}
	}
	slices.SortFunc(all, func(a, b Stored) int { return strings.Compare(a.Job, b.Job) })
	return all, nil
}

// Job reads one job; ErrUnknownJob when there is none of that name.
func Job(ctx context.Context, l *ledger.Ledger, name string) (Stored, error) {
	part := l.Partition(name)
	record, err := l.Client.HGet(ctx, l.Keys[part].Jobs, name).Result()
	if errors.Is(err, redis.Nil) {
		return Stored{}, fmt.Errorf("%w: %q in namespace %s; `jobs list` shows what there is", ledger.ErrUnknownJob, name, l.Config.Namespace)
	}
	some := []Stored{stored(name, record)}
	if err == nil {
		err = fillDefinitions(ctx, l, part, some)
	}
	return some[0], l.Explain(ctx, "read job "+name, err)
}

// Definitions reads definitions of one partition by their digests. The result lacks digests that
// are not stored.
func Definitions(ctx context.Context, l *ledger.Ledger, part int, digests []string) (map[string]string, error) {
	defs := make(map[string]string, len(digests))
	err := DefinitionsInto(ctx, l, part, digests, defs)
	return defs, l.Explain(ctx, "read definitions", err)
}

// DefinitionsInto is Definitions for a caller that explains the error and has a map already.
func DefinitionsInto(ctx context.Context, l *ledger.Ledger, part int, digests []string, into map[string]string) error {
	pages := slices.Collect(slices.Chunk(digests, readMax))
	found, err := ledger.Queue(ctx, l, pages, func(p redis.Pipeliner, page []string) *redis.SliceCmd {
		return p.HMGet(ctx, l.Keys[part].Defs, page...)
	})
	if err != nil {
		return err
	}
	for i, page := range pages {
		for j, def := range found[i].Val() {
			if def != nil {
				into[page[j]] = ledger.Text(def)
			}
		}
	}
	return nil
}

// Digests reads the digests of the stored definitions of jobs. Jobs that are missing or unreadable
// are left out.
func Digests(ctx context.Context, l *ledger.Ledger, names []string) (map[string]string, error) {
	groups := l.ByPartition(len(names), func(i int) string { return names[i] })
	read := make([]*redis.SliceCmd, len(groups))
	var some []int
	for part, places := range groups {
		if len(places) > 0 {
			some = append(some, part)
		}
	}
	err := l.EachReachable(ctx, ledger.NodeQueueTimeout, "read which definitions are stored", some, func(ctx context.Context, parts []int) error {
		_, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, part := range parts {
				fields := make([]string, len(groups[part]))
				for i, at := range groups[part] {
					fields[i] = names[at]
				}
				read[part] = p.HMGet(ctx, l.Keys[part].Jobs, fields...)
			}
			return nil
		})
		return err
	})
	if err != nil && !errors.As(err, new(*ledger.UnreachableError)) {
		return nil, err
	}
	digests := make(map[string]string, len(names))
	for _, part := range some {
		if read[part].Err() != nil {
			continue
		}
		for i, at := range groups[part] {
			if e, err := ledger.ParseEntry(names[at], ledger.Text(read[part].Val()[i])); err == nil {
				digests[names[at]] = e.Digest
			}
		}
	}
	return digests, err
}

// readMax is how many records are read at once by their names.
const readMax = 1000
