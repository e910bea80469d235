package ledger

import (
	"cmp"
	"context"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Ahead is the next work of a namespace.
type Ahead struct {
	Jobs   []string // the jobs with the earliest cursors, the earliest first
	Paused int      // how many jobs are paused; a pause that has ended by itself counts until the job's next tick
}

// Ahead reads the names of the jobs that are due first, at most so many, and counts pauses. With an
// UnreachableError, the other partitions' jobs and pauses are returned too.
func (l *Ledger) Ahead(ctx context.Context, most int64) (Ahead, error) {
	due, pauses := make([]*redis.ZSliceCmd, len(l.keys)), make([]*redis.IntCmd, len(l.keys))
	err := l.eachReachable(ctx, l.queueTimeout(ctx), "list what is due", l.All(), func(ctx context.Context, parts []int) error {
		_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, part := range parts {
				due[part] = p.ZRangeWithScores(ctx, l.keys[part].due, 0, most-1)
				pauses[part] = p.HLen(ctx, l.keys[part].pauses)
			}
			return nil
		})
		return err
	})
	var a Ahead
	var all []redis.Z
	for part := range l.keys {
		if due[part] != nil && pauses[part] != nil {
			all = append(all, due[part].Val()...)
			a.Paused += int(pauses[part].Val())
		}
	}
	slices.SortStableFunc(all, func(x, y redis.Z) int { return cmp.Compare(x.Score, y.Score) })
	for _, z := range all[:min(len(all), int(most))] {
		a.Jobs = append(a.Jobs, text(z.Member))
	}
	return a, err
}
