package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
)

// Control is the namespace's control record.
type Control struct {
	// Partitions is the number of hash slots' worth of jobs, fixed when the namespace was created.
	Partitions int
	// Generation is the active one: of the first node ever, or of the last promotion of all jobs.
	// The generation of a single job is in its definition.
	Generation string
	// Epoch counts promotions.
	Epoch int64
	// Promoting is the promotion that has begun and not ended, as written by it; "" for none.
	Promoting string
	// Move is the note of a move to or from another Redis; "" for none.
	Move string
}

// Control reads the control record.
func (l *Ledger) Control(ctx context.Context) (Control, error) {
	return control(ctx, l.client, l.cfg, false)
}

// Restore writes the lost parts of the control record, with active as the active generation, and of
// gates and incarnations. It returns the stored record, also with an UnreachableError. It returns
// ErrRefused for another number of partitions.
func (l *Ledger) Restore(ctx context.Context, active string) (Control, error) {
	stored, err := l.RestoreControl(ctx, active)
	if err == nil {
		err = l.RestoreParts(ctx, stored, l.All())
	}
	return stored, err
}

// RestoreControl is Restore for the control record.
func (l *Ledger) RestoreControl(ctx context.Context, active string) (Control, error) {
	cfg := l.cfg
	cfg.Generation = active
	stored, err := control(ctx, l.client, cfg, true)
	if err == nil {
		err = l.fits(stored)
	}
	return stored, err
}

// RestoreParts is Restore for the gates and incarnations of some partitions. The record must have
// been read after they were lost: a move may have closed the namespace before.
func (l *Ledger) RestoreParts(ctx context.Context, stored Control, parts []int) error {
	return l.incarnate(ctx, stored, parts, true)
}

// Reread is Restore where a move may have taken the namespace away: it writes nothing, and returns
// ErrNoNamespace without a control record.
func (l *Ledger) Reread(ctx context.Context) (Control, error) {
	stored, err := l.Control(ctx)
	if err == nil {
		err = l.fits(stored)
	}
	return stored, err
}

// fits refuses a control record that differs from the one this ledger was opened with.
func (l *Ledger) fits(stored Control) error {
	if stored.Partitions == len(l.keys) {
		return nil
	}
	return fmt.Errorf("%w: namespace %q was created anew with %d partitions while this node works with %d; restart the node with partitions set to %d",
		ErrRefused, l.cfg.Namespace, stored.Partitions, len(l.keys), stored.Partitions)
}

// AtReplica returns ErrNoNamespace of a tool as an error of the server, where the server is a
// replica: the namespace may be at its master. Any other error is returned as it is.
func AtReplica(ctx context.Context, client redis.UniversalClient, namespace string, err error) error {
	if errors.Is(err, ErrNoNamespace) {
		if t := redisconn.Replica(ctx, client, fmt.Errorf("%w: %q is not there", ErrNoNamespace, namespace)); t != nil {
			return t
		}
	}
	return err
}

// partitionsOf is the number of partitions of a new namespace. On one Redis more of them only
// divide the batches and multiply the idle calls; on a Cluster they spread over its masters.
func partitionsOf(client redis.UniversalClient) int {
	if _, ok := client.(*redis.ClusterClient); ok {
		return 64
	}
	return 1
}

// control reads the control record, after writing an absent one if create is set. To an existing
// record only an incarnation is added.
func control(ctx context.Context, client redis.UniversalClient, cfg Config, create bool) (Control, error) {
	key := controlKey(cfg.Namespace)
	record, err := client.HGetAll(ctx, key).Result()
	if err == nil && len(record) == 0 && create {
		var got *redis.MapStringStringCmd
		err = redisconn.TxPipelined(ctx, client, func(p redis.Pipeliner) error {
			p.HSetNX(ctx, key, "format", format)
			p.HSetNX(ctx, key, "partitions", cmp.Or(cfg.Partitions, partitionsOf(client)))
			p.HSetNX(ctx, key, "generation", cfg.Generation)
			p.HSetNX(ctx, key, "incarnation", cfg.NewID())
			got = p.HGetAll(ctx, key)
			return nil
		})
		record = got.Val()
	}
	if err != nil {
		return Control{}, explain(ctx, client, cfg.Namespace, "open namespace "+cfg.Namespace, err)
	}
	if len(record) == 0 {
		return Control{}, fmt.Errorf("%w: %q has never been used in the Redis at %s; start a node there first, or name another with --namespace",
			ErrNoNamespace, cfg.Namespace, redisconn.Addr(client))
	}
	if record["format"] != format {
		return Control{}, fmt.Errorf("%w: namespace %q has layout %q and this version knows %q; use the version that wrote it, or another namespace",
			ErrUnknownFormat, cfg.Namespace, record["format"], format)
	}
	n, err := strconv.Atoi(record["partitions"])
	if err != nil || n < 1 || n > 1024 {
		return Control{}, fmt.Errorf("%w: namespace %q: partitions is %q in %s", ErrUnknownFormat, cfg.Namespace, record["partitions"], key)
	}
	if record["incarnation"] == "" && create { // an earlier version made it
		if err := client.HSetNX(ctx, key, "incarnation", cfg.NewID()).Err(); err != nil {
			return Control{}, explain(ctx, client, cfg.Namespace, "open namespace "+cfg.Namespace, err)
		}
	}
	return Control{
		Partitions: n, Generation: record["generation"], Epoch: number(record["epoch"]),
		Promoting: record["promoting"], Move: record["move"],
	}, nil
}
