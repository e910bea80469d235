package ops

import (
	"cmp"
	"context"
	"slices"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/sharding"
)

// LeaseView is the lease of a run that is going, as tools and the API show it.
type LeaseView struct {
	Name   string `json:"name"` // the job, of a shard "job#2", counted from 0
	Job    string `json:"job"`
	Shard  int    `json:"shard"`
	Shards int    `json:"shards"`
	Run    string `json:"run"`
	Token  string `json:"token"`
	Node   string `json:"node"`
	// TTLMS is how much longer the lease lasts by Redis' clock, unless it is renewed. At 0 it has lapsed:
	// the run still holds it until a living node reaps it, or its own node comes back.
	TTLMS int64  `json:"ttl_ms"`
	Until *Stamp `json:"until"`
}

// Leases lists the leases of the runs that are going, by name and then by token: of one job, or with ""
// of all. Runs that nobody was granted yet have none. It returns ErrUnknownJob for a job that is not
// there, and ErrUnknownNamespace when no node has ever run in the namespace. Beside an UnreachableError stand those
// of the other partitions.
func (c *Client) Leases(ctx context.Context, job string) ([]LeaseView, error) {
	l, parts, _, left, err := c.partsOf(ctx, job)
	if err != nil {
		return nil, err
	}
	open, err := l.InFlightIn(ctx, parts)
	if err != nil {
		return nil, err
	}
	now, err := l.Now(ctx)
	if err != nil {
		return nil, err
	}
	views := []LeaseView{}
	for _, o := range open {
		if o.Token != 0 && !o.IsOpenTick && (job == "" || o.Job == job) {
			views = append(views, leaseView(o, now.UnixMilli()))
		}
	}
	slices.SortFunc(views, func(a, b LeaseView) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Shard, b.Shard), cmp.Compare(len(a.Token), len(b.Token)), cmp.Compare(a.Token, b.Token))
	})
	return views, left
}

func leaseView(l ledger.Run, now int64) LeaseView {
	return LeaseView{
		Name: sharding.Part(l.Job, l.Shard, l.Shards), Job: l.Job, Shard: l.Shard, Shards: l.Shards, Run: l.ID, Token: token(l.Token), Node: cmp.Or(l.NodeName, l.Node),
		TTLMS: max(0, l.Until-now), Until: stampOf(l.Until),
	}
}
