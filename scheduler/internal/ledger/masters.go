package ledger

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// Clustered reports whether partitions live on different masters, of which one may be unreachable
// alone.
func (l *Ledger) Clustered() bool {
	_, yes := l.Client.(*redis.ClusterClient)
	return yes
}

// Master is a server that has partitions, according to the client.
type Master struct {
	Client redis.UniversalClient // of this server alone
	Addr   string                // "" for the only one
}

// Known reports whether there is such a server.
func (m Master) Known() bool { return m.Client != nil }

// Master returns the server of a partition, according to the client: on a Cluster another server
// may be the master already.
func (l *Ledger) Master(ctx context.Context, part int) (Master, error) {
	cluster, yes := l.Client.(*redis.ClusterClient)
	if !yes {
		return Master{Client: l.Client}, nil
	}
	client, err := cluster.MasterForKey(ctx, l.Keys[part].Jobs)
	if err != nil {
		return Master{}, l.Explain(ctx, "look for a partition's master", err)
	}
	return Master{client, redisconn.Addr(client)}, nil
}

// Queue sends a command for each item in one pipeline, and returns the commands in the order of the
// items. The error is of the first command that failed.
func Queue[T, C any](ctx context.Context, l *Ledger, items []T, queue func(redis.Pipeliner, T) C) ([]C, error) {
	all := make([]C, len(items))
	_, err := l.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, item := range items {
			all[i] = queue(p, item)
		}
		return nil
	})
	return all, err
}

// EachMaster calls f once for each master of some partitions, with its partitions, and waits for
// all calls. On a Cluster they run at the same time: one pipeline would wait for the slowest
// master.
func (l *Ledger) EachMaster(ctx context.Context, parts []int, f func(parts []int)) {
	cluster, yes := l.Client.(*redis.ClusterClient)
	if !yes {
		f(parts)
		return
	}
	groups := make(map[*redis.Client][]int)
	for _, p := range parts {
		master, _ := cluster.MasterForKey(ctx, l.Keys[p].Jobs) // nil where no master is known: the call itself returns why
		groups[master] = append(groups[master], p)
	}
	var wg sync.WaitGroup
	for _, group := range groups {
		wg.Go(func() { f(group) })
	}
	wg.Wait()
}

// All are all partitions.
func (l *Ledger) All() []int {
	all := make([]int, len(l.Keys))
	for p := range all {
		all[p] = p
	}
	return all
}

// The shortest time that masters have to answer a call to all of them: from nodes, and from tools,
// which may read much over a long way.
const (
	NodeQueueTimeout = time.Second
	toolPatience     = 3 * time.Second
)

// QueueTimeout is how long masters have to answer a tool: longer where the client would wait longer
// for a reply, and less where ctx ends soon, so that the other masters' answers come before its
// end.
func (l *Ledger) QueueTimeout(ctx context.Context) time.Duration {
	d := toolPatience
	if c, yes := l.Client.(*redis.ClusterClient); yes {
		d = max(d, c.Options().ReadTimeout+NodeQueueTimeout)
	}
	if end, yes := ctx.Deadline(); yes {
		d = min(d, time.Until(end)*2/3) //nolint:forbidigo // of a limit of the caller, which is no instant of a schedule
	}
	return d
}

// EachReachable calls f once for each master of some partitions. When only some masters answer
// within that time, the error is an UnreachableError.
func (l *Ledger) EachReachable(ctx context.Context, within time.Duration, op string, parts []int, f func(ctx context.Context, parts []int) error) error {
	if l.Clustered() {
		short, cancel := context.WithTimeout(ctx, within)
		defer cancel()
		ctx = short
	}
	var mu sync.Mutex
	var left []int
	var silent, refused error
	l.EachMaster(ctx, parts, func(parts []int) {
		err := f(ctx, parts)
		if err != nil {
			err = l.Explain(ctx, op+l.atMaster(ctx, parts), err)
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case errors.Is(err, locking.ErrUnreachable):
			left, silent = append(left, parts...), cmp.Or(silent, err)
		case err != nil:
			refused = err
		}
	})
	if silent != nil && refused == nil && len(left) < len(parts) {
		return &UnreachableError{left, silent}
	}
	return cmp.Or(refused, silent)
}

// atMaster names the master of a Cluster that has these partitions: " at host:port", "" where there
// is no Cluster or none is known.
func (l *Ledger) atMaster(ctx context.Context, parts []int) string {
	if cluster, yes := l.Client.(*redis.ClusterClient); yes && len(parts) > 0 {
		if master, err := cluster.MasterForKey(ctx, l.Keys[parts[0]].Jobs); err == nil {
			return " at " + redisconn.Addr(master)
		}
	}
	return ""
}

// Explain is redisconn.Explain for the calls of tools, after which a Cluster client reads the
// topology again. After calls that only nodes make, the node refreshes it.
func (l *Ledger) Explain(ctx context.Context, op string, err error) error {
	return explain(ctx, l.Client, l.Config.Namespace, op, err)
}

// explain is Ledger.explain for calls that are made before there is a ledger.
func explain(ctx context.Context, client redis.UniversalClient, namespace, op string, err error) error {
	err = redisconn.Classify(op, err)
	redisconn.Refresh(ctx, client, err)
	return redisconn.Explain(client, namespace, err)
}
