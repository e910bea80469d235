package scheduler

import (
	"context"
	"errors"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/sharding"
)

// Nodes lists the nodes in the roster, those that were just gone among them. Beside an UnheardError stand all of them; jobs that
// were left out do not count as superseded or on standby.
func (i *Inspector) Nodes(ctx context.Context) ([]NodeView, error) {
	l, members, err := i.members(ctx)
	if err != nil {
		return nil, err
	}
	idle, err := i.unclaimed(ctx, l, members)
	left, err := beside(err)
	if err != nil {
		return nil, err
	}
	drains, err := i.Drains(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]NodeView, len(members))
	for k, m := range members {
		views[k] = nodeView(m)
		views[k].Superseded, views[k].Standby = idle[m.Set].superseded, idle[m.Set].standby
		if d, drained := drains[m.Name]; drained {
			views[k].Drain = &d
		}
	}
	return views, left
}

// members reads the roster of a namespace that is there.
func (i *Inspector) members(ctx context.Context) (*ledger.Ledger, []sharding.Member, error) {
	l, err := i.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	members, err := i.roster().Members(ctx)
	return l, members, redisconn.Explain("list nodes", err)
}

func named(members []sharding.Member, name string) bool {
	return slices.ContainsFunc(members, func(m sharding.Member) bool { return m.Name == name })
}

// unclaimed is how many jobs of each set of definitions are stored in another one; beside an UnheardError, of those that are heard.
func (i *Inspector) unclaimed(ctx context.Context, l *ledger.Ledger, members []sharding.Member) (map[string]idleJobs, error) {
	var digests []string
	generation := make(map[string]string) // of a set: its digests differ from those of another generation
	for _, m := range members {
		digests = append(digests, m.Set)
		generation[m.Set] = m.Generation
	}
	sets, err := i.roster().Sets(ctx, digests)
	if err != nil && !errors.Is(err, sharding.ErrDamaged) {
		return nil, redisconn.Explain("list nodes", err)
	}
	all, err := l.Jobs(ctx)
	left, err := beside(err)
	if err != nil {
		return nil, err
	}
	idle := make(map[string]idleJobs)
	for _, s := range all {
		d, err := jobs.ParseDefinition(s.Definition)
		if s.Err != nil || err != nil {
			continue
		}
		for set, held := range sets {
			n := idle[set]
			switch digest := held[s.Job]; {
			case digest == "" || digest == s.Digest:
			case d.Generation == generation[set]:
				n.superseded++
			default:
				n.standby++
			}
			idle[set] = n
		}
	}
	return idle, left
}

// idleJobs is how many jobs a node holds and does not claim.
type idleJobs struct{ superseded, standby int }
