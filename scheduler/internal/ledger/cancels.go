package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Cancel is the wish that a run ends. Without an author, it is a newer tick's.
type Cancel struct {
	Run, Author, Reason string
}

// Cancels reads who wants which runs ended, in some partitions, or in all where there are none: what a node that takes nothing
// more still looks for. Beside the error of a master that does not answer stands what the others have.
func (l *Ledger) Cancels(ctx context.Context, parts ...int) ([]Cancel, error) {
	if len(parts) == 0 {
		parts = l.All()
	}
	read := make([]*redis.MapStringStringCmd, len(l.keys))
	l.eachMaster(ctx, parts, func(parts []int) {
		_, _ = l.client.Pipelined(ctx, func(p redis.Pipeliner) error { // each command has its own error, read below
			for _, part := range parts {
				read[part] = p.HGetAll(ctx, l.keys[part].cancels)
			}
			return nil
		})
	})
	var all []Cancel
	var failed error
	for _, part := range parts {
		all, failed = append(all, cancelsOf(read[part].Val())...), cmp.Or(failed, read[part].Err())
	}
	return all, l.explain(ctx, "look for cancelled runs", failed)
}

// cancelsOf reads cancel flags, in the order of their runs; what is none is left out.
func cancelsOf(flags map[string]string) []Cancel {
	var all []Cancel
	for _, run := range slices.Sorted(maps.Keys(flags)) {
		c := Cancel{Run: run}
		if c.readCancel(flags[run]) == nil {
			all = append(all, c)
		}
	}
	return all
}
