package ledger

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"
)

// Cancel is a request that a run ends. Without an author, a newer tick replaces the run.
type Cancel struct {
	Run, Author, Reason string
}

// Cancels reads the cancel flags of some partitions, or of all without an argument. Nodes that
// claim nothing more read these too. With an error of some masters, the other masters' flags are
// returned.
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

// cancelsOf reads cancel flags, ordered by run. Unreadable flags are left out.
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
