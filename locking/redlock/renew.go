package redlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

// renewEach is added to MasterTimeout for each lock of a batch.
const renewEach = 50 * time.Microsecond

// batch is one round of renewals.
type batch struct {
	driver   *driver
	renewals []locking.Renewal
	numbers  []int64 // of the grants, see renew.lua; 0 for one of another driver
	votes    []votes
	errs     []error
	decided  chan struct{} // closed when answers may be read
	answers  []locking.RenewAnswer
}

// Renew implements locking.Renewer. It sends one pipeline to each master, and returns when a majority has
// answered for each lock. A renewed lock is set in the background at voting masters that do not have it.
func (d *driver) Renew(ctx context.Context, renewals []locking.Renewal) ([]locking.RenewAnswer, error) {
	b := d.renew(ctx, renewals, true)
	if len(renewals) == 0 || slices.ContainsFunc(b.answers, func(a locking.RenewAnswer) bool { return a != locking.Unknown }) {
		return b.answers, nil
	}
	return nil, fmt.Errorf("renew at %d redis masters: %w: %w", len(d.masters), locking.ErrUnreachable, reason(b.errs))
}

// renew is one round. With mend, locks that are missing at a master are set there.
func (d *driver) renew(ctx context.Context, renewals []locking.Renewal, mend bool) *batch {
	b := &batch{
		driver: d, renewals: renewals, numbers: make([]int64, len(renewals)),
		votes: make([]votes, len(renewals)), answers: make([]locking.RenewAnswer, len(renewals)), decided: make(chan struct{}),
	}
	for i, r := range renewals {
		b.votes[i].n = len(d.masters)
		if g := d.grants.of(r.Owner); g.token == r.Token {
			b.numbers[i] = g.number
		}
	}
	q := question[[]*redis.Cmd]{
		op: "renew", timeout: d.cfg.MasterTimeout + time.Duration(len(renewals))*renewEach, call: b.send, take: b.take,
	}
	if mend {
		q.then = b.setMissing
	}
	sent, slept := time.Now(), locking.Slept()
	ask(ctx, d, q)
	b.decide(time.Since(sent) + locking.Slept() - slept)
	return b
}

// send sends the batch to one master: in one round trip, or in two when the master lacks the
// script.
func (b *batch) send(ctx context.Context, m *master) ([]*redis.Cmd, error) {
	cmds := make([]*redis.Cmd, len(b.renewals))
	for _, queue := range []func(context.Context, redis.Pipeliner, []string, ...any) *redis.Cmd{renewScript.Queue, renewScript.QueueSource} {
		pipe := m.client.Pipeline()
		for i, r := range b.renewals {
			if cmds[i] == nil || redisconn.UnknownScript(cmds[i].Err()) {
				cmds[i] = queue(ctx, pipe, b.driver.cfg.keys(r.Name), b.args(i)...)
			}
		}
		if pipe.Len() > 0 {
			_, _ = pipe.Exec(ctx) // each command has its own error
		}
	}
	return cmds, nil
}

// take counts one master's answers, and reports whether all are known.
func (b *batch) take(a answer[[]*redis.Cmd]) bool {
	over := true
	for i := range b.votes {
		code, err := 0, a.err
		if err == nil {
			if code, err = a.value[i].Int(); err != nil {
				err = redisconn.Classify("renew at redis "+a.master.addr, err)
			}
		}
		if err != nil && len(b.errs) < 2*len(b.driver.masters) { // of a batch of hundreds, all alike
			b.errs = append(b.errs, err)
		}
		b.votes[i].count(code, err)
		over = over && b.votes[i].over()
	}
	return over
}

// decide sets the answers. A lock that is gone stays at a minority of masters until its owner releases it.
func (b *batch) decide(elapsed time.Duration) {
	d := b.driver
	for i, r := range b.renewals {
		b.answers[i] = b.votes[i].renewal(r.TTL, elapsed)
		switch b.answers[i] {
		case locking.Renewed:
			d.grants.add(r.Owner, r.Token, b.numbers[i], r.TTL)
		case locking.Gone, locking.Revoked:
			d.grants.remove(r.Owner, r.Token)
		case locking.Unknown:
		}
	}
	close(b.decided)
}

// setMissing sets the renewed locks at a master that does not have them. Each lock is renewed once
// more before: a contender that was granted the lock meanwhile has taken a majority from this
// grant, and the lock is then not set.
func (b *batch) setMissing(a answer[[]*redis.Cmd]) {
	lacks := func(cmd *redis.Cmd) bool { code, err := cmd.Int64(); return err == nil && code < 0 }
	if !slices.ContainsFunc(a.value, lacks) {
		return
	}
	<-b.decided
	d := b.driver
	for i, cmd := range a.value {
		r := b.renewals[i]
		if !lacks(cmd) || b.answers[i] != locking.Renewed || d.grants.of(r.Owner).token != r.Token {
			continue
		}
		again := d.renew(context.Background(), b.renewals[i:i+1], false)
		if again.answers[0] != locking.Renewed {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), d.cfg.MasterTimeout)
		code, _ := cmd.Int64()
		err := renewScript.Run(ctx, a.master.client, d.cfg.keys(r.Name), append(again.args(0), -code)...).Err()
		cancel()
		if err != nil {
			return
		}
	}
}

// args are the arguments of renew.lua, without the last.
func (b *batch) args(i int) []any {
	r := b.renewals[i]
	return []any{r.Owner, r.Token, lockredis.Millis(r.TTL + r.Delay), stateKeep, b.numbers[i]}
}
