package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Stored is a job as the ledger has it: its entry and its definition's JSON.
type Stored struct {
	Entry
	Definition []byte
	Err        error // wraps ErrUnknownFormat when the entry cannot be read; the other fields are then empty
}

// Jobs reads all jobs of the namespace, by name. With an UnreachableError, the other partitions'
// jobs are returned too.
func (l *Ledger) Jobs(ctx context.Context) ([]Stored, error) { return l.JobsIn(ctx, l.All()) }

// JobsIn is Jobs for some partitions.
func (l *Ledger) JobsIn(ctx context.Context, parts []int) ([]Stored, error) {
	return l.listed(ctx, parts, true)
}

// Entries is Jobs without the definitions.
func (l *Ledger) Entries(ctx context.Context) ([]Stored, error) {
	return l.listed(ctx, l.All(), false)
}

func (l *Ledger) listed(ctx context.Context, parts []int, defined bool) ([]Stored, error) {
	var mu sync.Mutex
	var all []Stored
	err := l.eachReachable(ctx, l.queueTimeout(ctx), "list jobs", parts, func(ctx context.Context, parts []int) error {
		some, err := l.jobsIn(ctx, parts, defined)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, some...)
		return err
	})
	if err != nil && !errors.As(err, new(*UnreachableError)) {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Stored) int { return strings.Compare(a.Job, b.Job) })
	return all, err
}

// jobsIn reads the jobs of some partitions.
func (l *Ledger) jobsIn(ctx context.Context, parts []int, defined bool) (all []Stored, err error) {
	entries := make([]*redis.MapStringStringCmd, len(parts))
	_, err = l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, part := range parts {
			entries[i] = p.HGetAll(ctx, l.keys[part].jobs)
		}
		return nil
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
			if err := l.defined(ctx, part, some); err != nil {
				return nil, err
			}
		}
		all = append(all, some...)
	}
	return all, nil
}

// defined fills in the definitions of jobs of one partition.
func (l *Ledger) defined(ctx context.Context, part int, some []Stored) error {
	digests, defs := make([]string, 0, len(some)), make(map[string]string, len(some))
	for _, s := range some {
		if s.Err == nil {
			digests = append(digests, s.Digest)
		}
	}
	err := l.definitions(ctx, part, digests, defs)
	for i := range some {
		if some[i].Err == nil {
			some[i].Definition = []byte(defs[some[i].Digest])
		}
	}
	return err
}

// stored is a job without its definition.
func stored(job, record string) Stored {
	e, err := parseEntry(job, record)
	if err != nil {
		return Stored{Entry: Entry{Job: job}, Err: fmt.Errorf("entry of %s: %w", job, err)}
	}
	return Stored{Entry: e}
}

// Count counts the jobs of the namespace, and names the partitions with jobs. With an
// UnreachableError, the other partitions' results are returned too.
func (l *Ledger) Count(ctx context.Context) (jobs int, parts []int, err error) {
	counts := make([]*redis.IntCmd, len(l.keys))
	err = l.eachReachable(ctx, l.queueTimeout(ctx), "count jobs", l.All(), func(ctx context.Context, parts []int) error {
		_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, part := range parts {
				counts[part] = p.HLen(ctx, l.keys[part].jobs)
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
func (l *Ledger) Names(ctx context.Context, parts []int) (names []string, err error) {
	found := make([]*redis.StringSliceCmd, len(l.keys))
	err = l.eachReachable(ctx, l.queueTimeout(ctx), "list the names of jobs", parts, func(ctx context.Context, parts []int) error {
		_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, part := range parts {
				found[part] = p.HKeys(ctx, l.keys[part].jobs)
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
func (l *Ledger) Named(ctx context.Context, names []string) ([]Stored, error) {
	return l.named(ctx, names, true)
}

// NamedEntries is Named without the definitions.
func (l *Ledger) NamedEntries(ctx context.Context, names []string) ([]Stored, error) {
	return l.named(ctx, names, false)
}

func (l *Ledger) named(ctx context.Context, names []string, defined bool) (all []Stored, err error) {
	for part, places := range l.byPartition(len(names), func(i int) string { return names[i] }) {
		for at := range slices.Chunk(places, chunkJobs) {
			fields := make([]string, len(at))
			for i, place := range at {
				fields[i] = names[place]
			}
			records, err := l.client.HMGet(ctx, l.keys[part].jobs, fields...).Result()
			if err != nil {
				return nil, l.explain(ctx, "read jobs", err)
			}
			some := make([]Stored, 0, len(fields))
			for i, record := range records {
				if record != nil {
					some = append(some, stored(fields[i], text(record)))
				}
			}
			if defined {
				if err := l.defined(ctx, part, some); err != nil {
					return nil, l.explain(ctx, "read jobs", err)
				}
			}
			all = append(all, some...)
		}
	}
	slices.SortFunc(all, func(a, b Stored) int { return strings.Compare(a.Job, b.Job) })
	return all, nil
}

// Job reads one job; ErrUnknownJob when there is none of that name.
func (l *Ledger) Job(ctx context.Context, name string) (Stored, error) {
	part := l.Partition(name)
	record, err := l.client.HGet(ctx, l.keys[part].jobs, name).Result()
	if errors.Is(err, redis.Nil) {
		return Stored{}, fmt.Errorf("%w: %q in namespace %s; `jobs list` shows what there is", ErrUnknownJob, name, l.cfg.Namespace)
	}
	some := []Stored{stored(name, record)}
	if err == nil {
		err = l.defined(ctx, part, some)
	}
	return some[0], l.explain(ctx, "read job "+name, err)
}
