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
	Err        error // wraps ErrForeign when the entry cannot be read; the other fields are then empty
}

// Jobs reads all jobs of the namespace, by name. Beside an UnheardError stand those of the other partitions.
func (l *Ledger) Jobs(ctx context.Context) ([]Stored, error) {
	var mu sync.Mutex
	var all []Stored
	err := l.unheard(ctx, l.patience(ctx), "list jobs", l.every(), func(ctx context.Context, parts []int) error {
		some, err := l.jobsIn(ctx, parts)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, some...)
		return err
	})
	if err != nil && !errors.As(err, new(*UnheardError)) {
		return nil, err
	}
	slices.SortFunc(all, func(a, b Stored) int { return strings.Compare(a.Job, b.Job) })
	return all, err
}

// jobsIn reads the jobs of some partitions.
func (l *Ledger) jobsIn(ctx context.Context, parts []int) (all []Stored, err error) {
	entries := make([]*redis.MapStringStringCmd, len(parts))
	defs := make([]*redis.MapStringStringCmd, len(parts))
	_, err = l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, part := range parts {
			entries[i], defs[i] = p.HGetAll(ctx, l.keys[part].jobs), p.HGetAll(ctx, l.keys[part].defs)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range entries {
		for job, record := range entries[i].Val() {
			all = append(all, stored(job, record, defs[i].Val()[job]))
		}
	}
	return all, nil
}

func stored(job, record, definition string) Stored {
	e, err := parseEntry(job, record)
	if err != nil {
		return Stored{Entry: Entry{Job: job}, Err: fmt.Errorf("entry of %s: %w", job, err)}
	}
	return Stored{Entry: e, Definition: []byte(definition)}
}

// Job reads one job; ErrUnknownJob when there is none of that name.
func (l *Ledger) Job(ctx context.Context, name string) (Stored, error) {
	k := l.keys[l.Partition(name)]
	var entry, def *redis.StringCmd
	_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		entry, def = p.HGet(ctx, k.jobs, name), p.HGet(ctx, k.defs, name)
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return Stored{}, l.explain(ctx, "read job "+name, err)
	}
	if errors.Is(entry.Err(), redis.Nil) {
		return Stored{}, fmt.Errorf("%w: %q in namespace %s; `jobs list` shows what there is", ErrUnknownJob, name, l.cfg.Namespace)
	}
	return stored(name, entry.Val(), def.Val()), nil
}
