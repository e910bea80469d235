package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

// Acquire implements locking.Driver. A TTL is rounded up to milliseconds, and Request.Queue is ignored.
//
// A failed attempt is withdrawn at all masters, in the background, when a master refused it. When masters only
// gave no answer it is left, so that the same owner may ask again.
func (d *driver) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	if err := d.refused(r); err != nil {
		return locking.Grant{}, err
	}
	a := &attempt{
		driver: d, request: r, number: d.nextAttempt(), lost: d.lostMasters(),
		ballot: ballot{votes: votes{n: len(d.masters)}},
		asked:  time.Now(), slept: locking.Slept(),
	}
	token, err := a.renewOwn(ctx)
	if err != nil || token != 0 {
		return a.grant(token), err
	}
	token, err = a.run(ctx)
	if err != nil {
		if a.withdraw {
			d.withdraw(r.Name, r.Owner, a.number)
		}
		return locking.Grant{}, err
	}
	d.grants.add(r.Owner, token, r.TTL)
	d.repairLost(a.lost, a.ballot.promises)
	return a.grant(token), nil
}

// refused returns an *locking.InputError for a request that no master would grant.
func (d *driver) refused(r locking.Request) error {
	if asks := r.TTL + r.Delay; asks > d.cfg.MaxTTL {
		return refuse(r.Name, "Options.TTL", "and Delay are %s together, more than Config.MaxTTL %s; ask for less, or raise MaxTTL", asks, d.cfg.MaxTTL)
	}
	return nil
}

// nextAttempt returns the number of an attempt: the clock, and larger than all before in this process.
func (d *driver) nextAttempt() int64 {
	for {
		last := d.attempt.Load()
		next := max(clockMicros(), last+1)
		if d.attempt.CompareAndSwap(last, next) {
			return next
		}
	}
}

// attempt is one call of Acquire.
type attempt struct {
	driver   *driver
	request  locking.Request
	number   int64
	asked    time.Time // before the first request
	slept    time.Duration
	lost     []lostMaster // known before the first request
	ballot   ballot
	withdraw bool
}

func (a *attempt) grant(token locking.Token) locking.Grant {
	r := a.request
	return locking.Grant{
		Name: r.Name, Owner: r.Owner, Token: token, Delay: r.Delay,
		TTL: time.Duration(lockredis.Millis(r.TTL)) * time.Millisecond, Asked: a.asked, Slept: a.slept,
	}
}

func (a *attempt) left() time.Duration {
	return validity(a.request.TTL, time.Since(a.asked)+locking.Slept()-a.slept)
}

func (a *attempt) op() string {
	return fmt.Sprintf("acquire at %d redis masters", len(a.driver.masters))
}

// renewOwn renews the lock that this driver has granted to the owner, and returns its token; 0 without one.
// Phase 1 could return another token: another quorum can have promised a larger one than the quorum that
// granted the lock.
func (a *attempt) renewOwn(ctx context.Context) (locking.Token, error) {
	d, r := a.driver, a.request
	token := d.grants.token(r.Owner)
	if token == 0 {
		return 0, nil
	}
	answers, err := d.Renew(ctx, []locking.Renewal{{Name: r.Name, Owner: r.Owner, Token: token, TTL: r.TTL, Delay: r.Delay}})
	if err != nil {
		return 0, err
	}
	if answers[0] == locking.Gone || answers[0] == locking.Revoked {
		return 0, nil
	}
	return token, nil
}

func (a *attempt) run(ctx context.Context) (locking.Token, error) {
	a.promise(ctx)
	if dup := a.driver.sameServer(a.ballot.runIDs); dup != nil {
		a.withdraw = true
		return 0, dup
	}
	//guard:redlock-quorum P4 a lock is granted by a majority of the masters
	if !a.ballot.won() {
		return 0, a.failed(ctx)
	}
	token, settled := chooseToken(len(a.driver.masters), a.ballot.tokens())
	if !settled {
		if err := a.confirm(ctx, token); err != nil {
			return 0, err
		}
	}
	if a.left() <= 0 {
		a.withdraw = true
		return 0, fmt.Errorf("%s: %w: the answers took longer than ttl %s; use a longer TTL, or a shorter MasterTimeout", a.op(), locking.ErrUnreachable, a.request.TTL)
	}
	return token, nil
}

// promise runs phase 1.
func (a *attempt) promise(ctx context.Context) {
	d, r := a.driver, a.request
	answers := askAll(ctx, d, 0, d.order.enter(r.Name, r.Owner, len(d.masters), false), func(ctx context.Context, _ int, m *master) (promise, error) {
		reply, err := acquireScript.Run(ctx, m.client, lockKeys(d.cfg.Namespace, r.Name),
			r.Owner, lockredis.Millis(r.TTL+r.Delay), a.number, a.asked.UnixMicro(), r.After, r.From,
			r.Holder, stateKeep, lockredis.Millis(d.cfg.MaxTTL)).Slice()
		if err != nil {
			return promise{}, m.explain("acquire", err)
		}
		p, err := readPromise(reply)
		if err == nil {
			d.noteState(m, p)
		}
		return p, err
	})
	gather(ctx, answers, len(d.masters), d.cfg.MasterTimeout, a.ballot.take)
}

// confirm runs phase 2: it writes the token to every master that promised, until a majority has it.
func (a *attempt) confirm(ctx context.Context, token locking.Token) error {
	d, r := a.driver, a.request
	promised := func(i int) bool {
		return slices.ContainsFunc(a.ballot.promises, func(p promise) bool { return p.master == i })
	}
	answers := askAll(ctx, d, 0, nil, func(ctx context.Context, i int, m *master) (int, error) {
		if !promised(i) {
			return 0, errNotAsked
		}
		code, err := confirmScript.Run(ctx, m.client, lockKeys(d.cfg.Namespace, r.Name), r.Owner, token, stateKeep, a.number).Int()
		return code, m.explain("confirm", err)
	})
	v := votes{n: len(d.masters)}
	var errs []error
	gather(ctx, answers, v.n, d.cfg.MasterTimeout, func(c answer[int]) bool {
		switch {
		case errors.Is(c.err, errNotAsked):
			v.failed++
		case c.err != nil:
			v.failed++
			errs = append(errs, c.err)
		case c.value == 1:
			v.yes++
		default:
			v.no++
		}
		return v.over()
	})
	if v.won() {
		return nil
	}
	a.withdraw = v.no > 0
	return fmt.Errorf("%s: %w: %d stored token %d, %d refused it: %w", a.op(), locking.ErrUnreachable, v.yes, token, v.no, reasons(ctx, errs))
}

var errNotAsked = errors.New("not asked")

// reasons returns why masters did not answer.
func reasons(ctx context.Context, errs []error) error {
	switch {
	case len(errs) > 0:
		return errors.Join(errs...)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return errors.New("the others did not answer in time")
}

// unanswered returns an error that names the masters without an answer, or none.
func (a *attempt) unanswered() []error {
	var addrs []string
	for i, m := range a.driver.masters {
		if len(a.ballot.answered) == 0 || !a.ballot.answered[i] {
			addrs = append(addrs, m.addr)
		}
	}
	if len(addrs) == 0 {
		return nil
	}
	return []error{fmt.Errorf("no answer from %s within %s", strings.Join(addrs, ", "), a.driver.cfg.MasterTimeout)}
}

// failed returns why there was no quorum of promises.
func (a *attempt) failed(ctx context.Context) error {
	b, r := a.ballot, a.request
	n := len(a.driver.masters)
	a.withdraw = b.no > 0
	switch {
	case len(b.claims) >= majority(n):
		return b.heldError(r.Name)
	case b.tooFar >= majority(n):
		return refuse(r.Name, "Options.After", "is %d, more than an hour ahead of the clocks of %d masters; give the token that the guard answered", r.After, b.tooFar)
	case b.returned >= majority(n):
		return fmt.Errorf("%s: %w: this owner has released it already", a.op(), locking.ErrLost)
	case b.empty >= majority(n):
		return fmt.Errorf("%s: %w: %d are new, or were emptied, and do not vote yet; call redlock.Bootstrap once, and wait for MaxTTL before if locks may still be held",
			a.op(), locking.ErrUnreachable, b.empty)
	case b.lostState >= majority(n):
		return fmt.Errorf("%s: %w: %d have lost their state, so earlier grants are not known; call redlock.Bootstrap",
			a.op(), locking.ErrUnreachable, b.lostState)
	}
	err := reasons(ctx, append(slices.Clone(b.errs), a.unanswered()...))
	if b.pending() == 0 && len(b.errs) > 0 && !slices.ContainsFunc(b.errs, func(e error) bool { return errors.Is(e, locking.ErrUnreachable) }) {
		a.withdraw = true // refused for good
		return fmt.Errorf("%s: %w", a.op(), err)
	}
	return fmt.Errorf("%s: %w: %d of %d promised, and %d are needed%s: %w", a.op(), locking.ErrUnreachable, b.yes, n, majority(n), b.others(), err)
}

// others counts the answers of the masters that have not promised.
func (b *ballot) others() string {
	var text strings.Builder
	for _, c := range []struct {
		n    int
		what string
	}{
		{len(b.claims), "held by others"}, {b.returned, "released already"}, {b.lostState - b.empty, "without their state"}, {b.empty, "new"},
		{b.tooFar, "with a clock an hour behind After"}, {len(b.errs) + b.pending(), "without an answer"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&text, ", %d %s", c.n, c.what)
		}
	}
	return text.String()
}
