package redislock

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

// Renew implements locking.Renewer. It sends one script call per lock, in one pipeline for each master of a
// Cluster, so that a hung master delays the answers for its own locks only.
func (d *Driver) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	if d.refused != nil {
		return nil, d.refused
	}
	cmds := make([]*redis.Cmd, len(batch))
	var masters sync.WaitGroup
	for _, locks := range d.byMaster(ctx, batch) {
		masters.Go(func() { d.renew(ctx, batch, locks, cmds) })
	}
	masters.Wait()
	return answers(cmds, func(err error) error { return d.explain(ctx, "renew at redis "+redisconn.Addr(d.client), err) })
}

// byMaster groups the indices of a batch by the master of each lock, in the client's view.
func (d *Driver) byMaster(ctx context.Context, batch []locking.Renewal) map[*redis.Client][]int {
	groups := make(map[*redis.Client][]int, 1)
	cluster, yes := d.client.(interface {
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	})
	for i, r := range batch {
		var master *redis.Client
		if yes {
			master, _ = cluster.MasterForKey(ctx, lockKeys(d.namespace, r.Name)[0]) // nil where unknown: the call itself fails then
		}
		groups[master] = append(groups[master], i)
	}
	return groups
}

// renew sends the renewals of some locks of the batch, and stores the replies in cmds.
func (d *Driver) renew(ctx context.Context, batch []locking.Renewal, locks []int, cmds []*redis.Cmd) {
	queue := func(i int, add func(context.Context, redis.Pipeliner, []string, ...any) *redis.Cmd, pipe redis.Pipeliner) {
		r := batch[i]
		keys := lockKeys(d.namespace, r.Name)
		cmds[i] = add(ctx, pipe, keys[:1], d.renewArgs(r)...)
		if extendsState(time.Now(), r.TTL) { // when this fails, the next hour's succeeds
			pipe.PExpire(ctx, keys[1], time.Duration(stateKeep)*time.Millisecond+r.TTL+r.Delay)
		}
	}

	pipe := d.client.Pipeline()
	for _, i := range locks {
		queue(i, d.scripts.renew.Queue, pipe)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error, read by answers

	pipe = d.client.Pipeline()
	for _, i := range locks {
		if redisconn.UnknownScript(cmds[i].Err()) {
			queue(i, d.scripts.renew.QueueSource, pipe)
		}
	}
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx) // each command has its own error
	}
}

// renewArgs returns the arguments of renew.lua or share_renew.lua.
func (d *Driver) renewArgs(r locking.Renewal) []any {
	px := lockredis.Millis(r.TTL + r.Delay)
	if d.kind != "" {
		return []any{r.Owner, r.Token, px}
	}
	return []any{strconv.FormatInt(r.Token, 10) + ":" + r.Owner, px}
}

// extendsState reports whether a renewal extends the token state too, which a lock held for a day would
// outlive. It is true for at least one renewal an hour, because the one before the hour began is less than a
// TTL old. The state needs a command of its own, because the script names one key only.
func extendsState(now time.Time, ttl time.Duration) bool {
	return !now.Truncate(time.Hour).Equal(now.Add(-ttl).Truncate(time.Hour))
}

// answers converts replies to answers. The error is the error of the first Unknown answer.
func answers(cmds []*redis.Cmd, explain func(error) error) (out []locking.RenewAnswer, first error) {
	out = make([]locking.RenewAnswer, len(cmds))
	for i, cmd := range cmds {
		code, err := cmd.Int()
		switch {
		case err != nil:
			err = explain(err)
			first = cmp.Or(first, err)
		case code == 1:
			out[i] = locking.Renewed
		case code == 2:
			out[i] = locking.Revoked
		default:
			out[i] = locking.Gone
		}
	}
	return out, first
}
