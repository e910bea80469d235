package redlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
	"github.com/escapement/escapement/locking/redisconn"
)

// Codes of renew.lua. With the first two, a lock that a majority renewed is added to the master.
const (
	codeFree       = -1
	codeOtherToken = 2
	codeRevoked    = 3
)

// batch is one call of Renew.
type batch struct {
	driver   *driver
	renewals []locking.Renewal
	number   int64 // from nextAttempt; see topup.lua
	votes    []votes
	decided  chan struct{} // closed when answers may be read
	answers  []locking.RenewAnswer
}

// codes are one master's answers, in order, each a code or an error.
type codes struct {
	code []int
	err  []error
}

// Renew implements locking.Renewer. It sends one pipeline to each master, and returns when a majority has
// answered for each lock. A renewed lock is added in the background to voting masters that do not have it.
func (d *driver) Renew(ctx context.Context, renewals []locking.Renewal) ([]locking.RenewAnswer, error) {
	b := &batch{
		driver: d, renewals: renewals, number: d.nextAttempt(),
		votes: make([]votes, len(renewals)), decided: make(chan struct{}),
	}
	for i := range b.votes {
		b.votes[i].n = len(d.masters)
	}
	sent, slept := time.Now(), locking.Slept()
	timeout := d.cfg.MasterTimeout + time.Duration(len(renewals))*renewEach
	answers := make(chan answer[codes], len(d.masters))
	askAll(ctx, d, 2*timeout, nil, func(ctx context.Context, i int, m *master) (struct{}, error) {
		c, err := b.ask(ctx, m, timeout)
		answers <- answer[codes]{i, c, err}
		b.addMissing(ctx, m, c, timeout)
		return struct{}{}, nil
	})
	var errs []error
	gather(ctx, answers, len(d.masters), timeout, func(a answer[codes]) bool {
		errs = append(errs, b.count(a)...)
		return b.over()
	})
	elapsed := time.Since(sent) + locking.Slept() - slept
	b.decide(elapsed)
	return b.result(ctx, errs)
}

// renewEach is added to MasterTimeout for each lock of a batch.
const renewEach = 50 * time.Microsecond

// ask renews all locks of the batch at one master.
func (b *batch) ask(ctx context.Context, m *master, timeout time.Duration) (codes, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	all := make([]int, len(b.renewals))
	for i := range all {
		all[i] = i
	}
	cmds := b.pipeline(ctx, m, renewScript, all, func(r locking.Renewal) []any {
		return []any{r.Owner, r.Token, lockredis.Millis(r.TTL + r.Delay), stateKeep}
	})
	out := codes{make([]int, len(cmds)), make([]error, len(cmds))}
	for i, cmd := range cmds {
		code, err := cmd.Int()
		out.code[i], out.err[i] = code, m.explain("renew", err)
	}
	return out, nil
}

// addMissing waits until the batch is decided, and then sets the renewed locks that this master does not have.
func (b *batch) addMissing(ctx context.Context, m *master, c codes, timeout time.Duration) {
	var missed []int
	for i := range c.code {
		if c.err[i] == nil && (c.code[i] == codeFree || c.code[i] == codeOtherToken) {
			missed = append(missed, i)
		}
	}
	if len(missed) == 0 {
		return
	}
	select {
	case <-b.decided:
	case <-ctx.Done():
		return
	}
	var renewed []int
	for _, i := range missed {
		if b.answers[i] == locking.Renewed {
			renewed = append(renewed, i)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	b.pipeline(ctx, m, topupScript, renewed, func(r locking.Renewal) []any {
		return []any{r.Owner, r.Token, lockredis.Millis(r.TTL + r.Delay), stateKeep, b.number}
	})
}

// pipeline runs a script for some of the batch's locks, in one round trip; in two when the master does not know
// the script.
func (b *batch) pipeline(ctx context.Context, m *master, s *redisconn.Script, which []int, args func(r locking.Renewal) []any) []*redis.Cmd {
	cmds := make([]*redis.Cmd, len(which))
	if len(which) == 0 {
		return nil
	}
	pipe := m.client.Pipeline()
	for at, i := range which {
		cmds[at] = s.Queue(ctx, pipe, lockKeys(b.driver.cfg.Namespace, b.renewals[i].Name), args(b.renewals[i])...)
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	pipe = m.client.Pipeline()
	for at, i := range which {
		if redisconn.UnknownScript(cmds[at].Err()) {
			cmds[at] = s.QueueSource(ctx, pipe, lockKeys(b.driver.cfg.Namespace, b.renewals[i].Name), args(b.renewals[i])...)
		}
	}
	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx) // as above
	}
	return cmds
}

// count counts one master's answers, and returns its errors.
func (b *batch) count(a answer[codes]) []error {
	var errs []error
	for i := range b.votes {
		if a.err != nil {
			b.votes[i].failed++
			continue
		}
		if a.value.err[i] == nil && a.value.code[i] == codeOtherToken {
			b.votes[i].other++
			continue
		}
		if a.value.err[i] == nil && a.value.code[i] == codeRevoked {
			b.votes[i].revoked++
		}
		b.votes[i].count(a.value.code[i], a.value.err[i])
		if a.value.err[i] != nil {
			errs = append(errs, a.value.err[i])
		}
	}
	if a.err != nil {
		errs = append(errs, a.err)
	}
	return errs
}

func (b *batch) over() bool {
	for _, v := range b.votes {
		if !v.over() {
			return false
		}
	}
	return true
}

// decide sets the answers. A lock that is gone stays at a minority of masters until its owner releases it.
func (b *batch) decide(elapsed time.Duration) {
	d := b.driver
	b.answers = make([]locking.RenewAnswer, len(b.renewals))
	for i, r := range b.renewals {
		b.answers[i] = b.votes[i].renewal(r.TTL, elapsed)
		switch b.answers[i] {
		case locking.Renewed:
			d.grants.add(r.Owner, r.Token, r.TTL)
		case locking.Gone, locking.Revoked:
			d.grants.forget(r.Owner, r.Token)
		case locking.Unknown:
		}
	}
	close(b.decided)
}

// result returns the answers, or an error when all are unknown.
func (b *batch) result(ctx context.Context, errs []error) ([]locking.RenewAnswer, error) {
	for _, a := range b.answers {
		if a != locking.Unknown {
			return b.answers, nil
		}
	}
	if len(b.answers) == 0 {
		return b.answers, nil
	}
	const most = 3 // of a batch of hundreds, all alike
	if len(errs) > most {
		errs = append(errs[:most:most], errors.New("and more"))
	}
	return nil, fmt.Errorf("renew at %d redis masters: %w: %w", len(b.driver.masters), locking.ErrUnreachable, reasons(ctx, errs))
}
