package inspect

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/escapement/escapement/jobs"
	"github.com/escapement/escapement/scheduler/internal/cluster"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/ledger/query"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/scheduler/internal/work"
	"github.com/escapement/escapement/sharding"
)

// Holding is which nodes hold a job.
type Holding struct {
	Owner  string // the living node that goes first, "" when none can run the job
	NoNode string // why none can, "" when one can
	Orphan bool   // no living node of its generation holds it, in whatever definition, that is not on standby
	// Living nodes that hold another definition, by name: of the job's generation, and of another one.
	Superseded, Standby []string
}

// Holders returns the Holding of some jobs. A job's owner depends on all jobs: where some is not
// the whole namespace, the owner comes from hashing alone, which is right unless the hashing gives
// a node much more than its share.
func Holders(ctx context.Context, l *ledger.Ledger, roster *roster.Roster, some Page) (map[string]Holding, error) {
	around, members, _, err := cluster.ReadRoster(ctx, l, roster, nil, cluster.JobsNeeded(l, names(some.Jobs)))
	if err != nil {
		return nil, err
	}
	c := around.Active(members)
	held := make(map[string]Holding, len(some.Jobs))
	var list []*work.Job
	for _, s := range some.Jobs {
		h := Holding{Orphan: !c.Knows(s.Job)}
		if d, err := jobs.ParseDefinition(s.Definition); err == nil { // else the reader of the job reports the fault
			list = append(list, &work.Job{Job: d.Job, Digest: s.Digest})
			h.others(s, d.Generation, around, members)
			holders := c.Digests(s.Job)
			h.Orphan = h.Orphan || holders != nil && !slices.Contains(holders, s.Digest) && len(h.Superseded) == 0
		}
		held[s.Job] = h
	}
	firsts := make(map[*work.Job]sharding.Node)
	if some.Whole {
		firsts = c.Firsts(list)
	}
	for _, j := range list {
		h := held[j.Name]
		first, can := firsts[j]
		if !some.Whole {
			first, can = sharding.Owner(j.Name, c.Holders(j))
		}
		if h.Owner = first.Name; !can {
			h.NoNode = cmp.Or(around.NoNode(j.Name, j.Digest, j.Labels), "the living nodes that can run it are about to end")
		}
		held[j.Name] = h
	}
	return held, nil
}

// others notes the nodes that hold another definition than the stored one, which is of this
// generation.
func (h *Holding) others(s query.Stored, generation string, around *cluster.View, members []roster.Member) {
	for _, m := range members {
		switch digest, _ := around.Sets[m.Set].Digest(s.Job); {
		case digest == "" || digest == s.Digest:
		case m.Generation == generation:
			h.Superseded = append(h.Superseded, m.Name)
		default:
			h.Standby = append(h.Standby, m.Name)
		}
	}
	slices.Sort(h.Superseded)
	slices.Sort(h.Standby)
}

func names(some []query.Stored) []string {
	list := make([]string, len(some))
	for i, s := range some {
		list[i] = s.Job
	}
	return list
}

// HeldBy are the names of the living nodes that hold a job and may register it, in whatever
// definition, draining nodes too. unknownFormat counts the nodes whose jobs cannot be read.
func HeldBy(ctx context.Context, l *ledger.Ledger, roster *roster.Roster, job string) (names []string, unknownFormat int, err error) {
	around, members, unread, err := cluster.ReadRoster(ctx, l, roster, nil, cluster.JobsNeeded(l, []string{job}))
	if err != nil {
		return nil, 0, err
	}
	for _, n := range around.Active(members).Nodes {
		digest, known := around.Sets[n.Set].Digest(job)
		if digest != "" {
			names = append(names, cmp.Or(n.Name, n.ID))
		}
		if !known {
			unknownFormat++
		}
	}
	slices.Sort(names)
	return names, unknownFormat + unread, nil
}

// HeldStored are the names of the nodes that hold a stored job of this name in a registered
// definition. A program's job of the same name does not count.
func HeldStored(ctx context.Context, l *ledger.Ledger, roster *roster.Roster, job string) (names []string, err error) {
	around, members, _, err := cluster.ReadRoster(ctx, l, roster, nil, cluster.JobsNeeded(l, []string{job}))
	if err != nil {
		return nil, err
	}
	by := make(map[string][]string) // digest -> names
	for _, n := range around.Active(members).Nodes {
		if digest, _ := around.Sets[n.Set].Digest(job); digest != "" {
			by[digest] = append(by[digest], cmp.Or(n.Name, n.ID))
		}
	}
	if len(by) == 0 {
		return nil, nil
	}
	texts, err := query.Definitions(ctx, l, l.Partition(job), slices.Collect(maps.Keys(by)))
	if err != nil {
		return nil, err
	}
	for digest, text := range texts {
		if d, err := jobs.ParseDefinition([]byte(text)); err != nil || d.Stored > 0 {
			names = append(names, by[digest]...)
		}
	}
	slices.Sort(names)
	return names, nil
}
