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

// Renew is described at locking.Renewer. It sends one script call per lock, those
// of one master of a Cluster in one pipeline: so the answer for one lock may be
// Unknown while others are known, and a master that hangs answers for none but its own.
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

// byMaster are the indices of renewals by the masters of their locks, as the client knows them.
func (d *Driver) byMaster(ctx context.Context, batch []locking.Renewal) map[*redis.Client][]int {
	groups := make(map[*redis.Client][]int, 1)
	cluster, yes := d.client.(interface {
		MasterForKey(ctx context.Context, key string) (*redis.Client, error)
	})
	for i, r := range batch {
		var master *redis.Client
		if yes {
			master, _ = cluster.MasterForKey(ctx, lockKeys(d.namespace, r.Name)[0]) // nil, where none is known: the call itself says why
		}
		groups[master] = append(groups[master], i)
	}
	return groups
}

// renew asks for some of the renewals.
func (d *Driver) renew(ctx context.Context, batch []locking.Renewal, locks []int, cmds []*redis.Cmd) {
	queue := func(i int, add func(context.Context, redis.Pipeliner, []string, ...any) *redis.Cmd, pipe redis.Pipeliner) {
		r := batch[i]
		value := strconv.FormatInt(r.Token, 10) + ":" + r.Owner
		keys := lockKeys(d.namespace, r.Name)
		cmds[i] = add(ctx, pipe, keys[:1], value, lockredis.Millis(r.TTL+r.Delay))
		if firstOfTheHour(time.Now(), r.TTL) { // its failure is the next one's to mend
			pipe.PExpire(ctx, keys[1], time.Duration(stateKeep)*time.Millisecond+r.TTL+r.Delay)
		}
	}

	pipe := d.client.Pipeline()
	for _, i := range locks {
		queue(i, renewScript.Queue, pipe)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error, read by answers

	pipe = d.client.Pipeline()
	for _, i := range locks {
		if redisconn.UnknownScript(cmds[i].Err()) {
			queue(i, renewScript.QueueSource, pipe)
		}
	}
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx) // as above
	}
}

// firstOfTheHour says for some renewals in an hour that they are to keep the
// token state too, which a lock that is held for a day would outlive. However they
// are spaced, one is: the last before the hour began was less than a ttl ago. It is
// a command of its own, because the script names one key only.
func firstOfTheHour(now time.Time, ttl time.Duration) bool {
	return !now.Truncate(time.Hour).Equal(now.Add(-ttl).Truncate(time.Hour))
}

// answers turns replies into answers. Beside those that are unknown stands the first error.
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
