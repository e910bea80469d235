package ops

import (
	"time"

	"cmp"
	"context"
	"slices"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/sharding"
)

// LeaseView is the lease of a run that is going, as tools and the API show it. See Encode for its JSON.
type LeaseView struct {
	Name   string `json:"name"` // the job, of a shard "job#2", counted from 0
	Job    string `json:"job"`
	Shard  int    `json:"shard"`
	Shards int    `json:"shards"`
	Run    string `json:"run"`
	Token  int64  `json:"token,string"`
	Node   string `json:"node"`
	// TTL is how much longer the lease lasts by Redis' clock, unless it is renewed. At 0 it has
	// lapsed: the run still holds it until a living node reaps it, or its own node comes back.
	TTL   time.Duration `json:"ttl_ms"`
	Until time.Time     `json:"until"`
}

func leases(ctx context.Context, c *conn, job string) ([]LeaseView, error) {
	l, parts, _, left, err := partsOf(ctx, c, job)
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
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Shard, b.Shard), cmp.Compare(a.Token, b.Token))
	})
	return views, left
}

func leaseView(l ledger.Run, now int64) LeaseView {
	return LeaseView{
		Name: sharding.Part(l.Job, l.Shard, l.Shards), Job: l.Job, Shard: l.Shard, Shards: l.Shards, Run: l.ID, Token: l.Token, Node: cmp.Or(l.NodeName, l.Node),
		TTL: ms(max(0, l.Until-now)), Until: timeOf(l.Until),
	}
}
