package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// open opens the ledger, makes the roles and joins the roster. With WaitForRedis it waits for
// Redis.
func (n *Node) open(ctx context.Context) (*roles, error) {
	for try := 0; ; try++ {
		r, err := n.openOnce(ctx)
		if err == nil {
			n.health.OK("open")
			return r, nil
		}
		err = redisconn.Explain(n.client, n.cfg.Namespace, err)
		if r != nil {
			r.cluster.Leave(ctx) // the record may have arrived although its answer did not
		}
		if !n.cfg.WaitForRedis || !errors.Is(err, locking.ErrUnreachable) || ctx.Err() != nil {
			return nil, err
		}
		n.health.Fail("open", err)
		wait.For(ctx, wait.Backoff(n.id, try))
	}
}

// openOnce makes the roles for the current jobs. Jobs that are added later are added to the roles.
func (n *Node) openOnce(ctx context.Context) (*roles, error) {
	n.changing.Lock()
	defer n.changing.Unlock()
	if err := n.moves.CheckStart(ctx); err != nil {
		return nil, err
	}
	redisconn.LoadTopology(ctx, n.client)
	call, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cfg := n.cfg.ledger()
	cfg.NewID = func() string { return fmt.Sprint(n.id, ".", n.incarnations.Add(1)) }
	l, err := ledger.Join(call, n.client, cfg)
	if err != nil {
		return nil, err
	}
	if l, err = n.confirming(call, l); err != nil {
		return nil, err
	}
	l = l.Believing(func(context.Context) time.Time { return n.clock.Now() })
	r := n.newRoles(context.WithoutCancel(ctx), l)
	if err := r.lanes.Begin(call); err != nil {
		return nil, err
	}
	if err := r.cluster.Join(call); err != nil {
		return r, err
	}
	n.warnEviction(ctx)
	n.warnUnnamed(ctx)
	n.roles.Store(r)
	return r, nil
}

// confirming is the ledger whose claims wait for Config.Confirm replicas.
func (n *Node) confirming(ctx context.Context, l *ledger.Ledger) (_ *ledger.Ledger, err error) {
	replicas := n.cfg.Confirm
	if replicas == ConfirmMajority {
		if replicas, err = redisconn.Majority(ctx, n.client); err != nil {
			return nil, fmt.Errorf("confirm: %w", err)
		}
		n.log.Info("claims are confirmed by replicas", "replicas", replicas)
	}
	return l.Confirming(replicas), nil
}

// evictionWithin bounds the questions for the eviction policy and the server's id, because a master
// of a Cluster may not answer.
const evictionWithin = 500 * time.Millisecond

// warnEviction warns of a Redis that drops keys when its memory is full. It checks once.
func (n *Node) warnEviction(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, evictionWithin)
	defer cancel()
	if policy, _ := redisconn.Evicts(ctx, n.client); policy != "" { // other problems show in the calls that matter
		n.log.Warn("Redis drops keys when its memory is full: a tick may run twice, and history vanish; set maxmemory-policy noeviction", "policy", policy)
	}
}

// warnUnnamed warns of a Redis that does not give its id, by which nodes notice a restart or
// failover. It calls INFO once more, to find the reason: the embedded server has no id, and does
// not survive a restart.
func (n *Node) warnUnnamed(ctx context.Context) {
	if n.clock.Server() != "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, evictionWithin)
	defer cancel()
	err := n.client.Info(ctx, "server").Err()
	if err == nil || redis.IsPermissionError(err) || strings.Contains(strings.ToLower(err.Error()), "unknown command") {
		n.log.Warn("Redis does not say which server it is, for this node's user may not ask for INFO, or the service hides master_replid and run_id: restarts and failovers go unnoticed, and after one that lost writes a tick may run twice; give the user the right to INFO (ACL SETUSER NAME +info)", "error", err)
	}
}
