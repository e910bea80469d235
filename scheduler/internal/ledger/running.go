package ledger

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// Running reads the runs that are going in all partitions, by job. It returns ErrUnknownFormat for
// a record that it cannot read.
func (l *Ledger) Running(ctx context.Context) ([]Run, error) {
	got := make([]*redis.MapStringStringCmd, len(l.keys))
	_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, k := range l.keys {
			got[i] = p.HGetAll(ctx, k.runs)
		}
		return nil
	})
	if err != nil {
		return nil, redisconn.Classify("list runs", err)
	}
	var runs []Run
	var bad error
	for i, k := range l.keys {
		runs = append(runs, openRuns(got[i].Val(), nil, func(err error) { bad = fmt.Errorf("%s: %w", k.runs, err) })...)
	}
	slices.SortStableFunc(runs, func(a, b Run) int { return strings.Compare(a.Job, b.Job) })
	return runs, bad
}

// Leftovers names keys of partitions in a Redis that has no control record of the namespace, except
// gates and incarnations: lost with the record, or about to be found. 100 at most.
func Leftovers(ctx context.Context, client redis.UniversalClient, namespace string) ([]string, error) {
	found, err := (&Ledger{client: client, cfg: Config{Namespace: namespace}}).UnknownKeys(ctx)
	var keys []string
	for _, s := range found {
		if !strings.HasSuffix(s.Key, ":gate") && !strings.HasSuffix(s.Key, ":incarnation") {
			keys = append(keys, s.Key)
		}
	}
	return keys, err
}

// Sizes counts the jobs, the runs in flight and the runs that were never granted.
func (l *Ledger) Sizes(ctx context.Context) (jobs, running, pending int64, err error) {
	got := make([]*redis.IntCmd, 0, 3*len(l.keys))
	_, err = l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, k := range l.keys {
			got = append(got, p.HLen(ctx, k.jobs), p.HLen(ctx, k.runs), p.ZCard(ctx, k.pending))
		}
		return nil
	})
	for i := 0; i < len(got); i += 3 {
		jobs, running, pending = jobs+got[i].Val(), running+got[i+1].Val(), pending+got[i+2].Val()
	}
	return jobs, running, pending, redisconn.Classify("count the jobs", err)
}
