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

// Acquire is described at locking.Driver. A ttl is rounded up to milliseconds.
// Request.Queue is ignored: masters that know nothing of each other have no
// common line.
//
// An attempt that failed is taken back everywhere, in the background, when some
// master said why; when masters were only silent it is left alone, so that the
// same owner may ask again.
func (d *Driver) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	if err := d.refused(r); err != nil {
		return locking.Grant{}, err
	}
	a := &attempt{
		driver: d, request: r, number: d.nextAttempt(), ripe: d.sickMasters(),
		ballot: ballot{votes: votes{n: len(d.masters)}},
		asked:  time.Now(), slept: locking.Slept(),
	}
	token, err := a.again(ctx)
	if err != nil || token != 0 {
		return a.grant(token), err
	}
	token, err = a.run(ctx)
	if err != nil {
		if a.takeBack {
			d.withdraw(r.Name, r.Owner, a.number)
		}
		return locking.Grant{}, err
	}
	d.grants.add(r.Owner, token, r.TTL)
	d.repairSick(a.ripe, a.ballot.promises)
	return a.grant(token), nil
}

// refused returns what is wrong with a request.
func (d *Driver) refused(r locking.Request) error {
	if asks := r.TTL + r.Delay; asks > d.cfg.MaxTTL {
		return refuse(r.Name, "Options.TTL", "and Delay are %s together, more than Config.MaxTTL %s; ask for less, or raise MaxTTL", asks, d.cfg.MaxTTL)
	}
	return nil
}

// nextAttempt numbers the attempts of this process by its clock: a later one of
// the same owner has a larger number.
func (d *Driver) nextAttempt() int64 {
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
	driver   *Driver
	request  locking.Request
	number   int64
	asked    time.Time // before the first request
	slept    time.Duration
	ripe     []sickMaster // known to have lost their state before the first request
	ballot   ballot
	takeBack bool
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

// again keeps what this driver has granted to the owner already, and returns its
// token; 0 when there is nothing, or it is gone. Phase 1 would not do: each
// master promises what it promised before, and a quorum of others can have
// promised something larger than the quorum that granted the lock.
func (a *attempt) again(ctx context.Context) (locking.Token, error) {
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
		a.takeBack = true
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
		a.takeBack = true
		return 0, fmt.Errorf("%s: %w: the answers took longer than ttl %s", a.op(), locking.ErrUnreachable, a.request.TTL)
	}
	return token, nil
}

// promise is phase 1.
func (a *attempt) promise(ctx context.Context) {
	d, r := a.driver, a.request
	answers := askAll(ctx, d, 0, d.lanes.enter(r.Name, r.Owner, len(d.masters), false), func(ctx context.Context, _ int, m *master) (promise, error) {
		reply, err := acquireScript.Run(ctx, m.client, lockKeys(d.cfg.Namespace, r.Name),
			r.Owner, lockredis.Millis(r.TTL+r.Delay), a.number, a.asked.UnixMicro(), r.After, r.From,
			r.Holder, stateKeep, lockredis.Millis(d.cfg.MaxTTL)).Slice()
		if err != nil {
			return promise{}, m.explain("acquire", err)
		}
		p, err := readPromise(reply)
		if err == nil {
			d.hear(m, p)
		}
		return p, err
	})
	gather(ctx, answers, len(d.masters), d.cfg.MasterTimeout, a.ballot.take)
}

// confirm is phase 2: the token goes to every master that promised. The answer
// is there when a majority has it.
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
	a.takeBack = v.no > 0
	return fmt.Errorf("%s: %w: token %d reached %d of them, %d refused it: %w", a.op(), locking.ErrUnreachable, token, v.yes, v.no, silence(ctx, errs))
}

var errNotAsked = errors.New("not asked")

// silence is what is known of masters that did not answer.
func silence(ctx context.Context, errs []error) error {
	switch {
	case len(errs) > 0:
		return errors.Join(errs...)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return errors.New("the others did not answer in time")
}

// unheard is one error that names the masters of which nothing was heard in time, or none.
func (a *attempt) unheard() []error {
	var addrs []string
	for i, m := range a.driver.masters {
		if len(a.ballot.heard) == 0 || !a.ballot.heard[i] {
			addrs = append(addrs, m.addr)
		}
	}
	if len(addrs) == 0 {
		return nil
	}
	return []error{fmt.Errorf("no answer from %s within %s", strings.Join(addrs, ", "), a.driver.cfg.MasterTimeout)}
}

// failed says why there was no quorum of promises.
func (a *attempt) failed(ctx context.Context) error {
	b, r := a.ballot, a.request
	n := len(a.driver.masters)
	a.takeBack = b.no > 0
	switch {
	case len(b.claims) >= majority(n):
		return b.heldError(r.Name)
	case b.tooFar >= majority(n):
		return refuse(r.Name, "Options.After", "is %d, more than an hour ahead of the clocks of %d masters; which guard says so?", r.After, b.tooFar)
	case b.returned >= majority(n):
		return fmt.Errorf("%s: %w: this owner has given it back already", a.op(), locking.ErrLost)
	case b.empty >= majority(n):
		return fmt.Errorf("%s: %w: %d are new, or were emptied, and do not vote yet; call redlock.Bootstrap once, and wait for MaxTTL before if locks may still be held",
			a.op(), locking.ErrUnreachable, b.empty)
	case b.amnesiac >= majority(n):
		return fmt.Errorf("%s: %w: %d have lost their state (a first start, or a loss): nobody knows what was granted; see redlock.Bootstrap",
			a.op(), locking.ErrUnreachable, b.amnesiac)
	}
	err := silence(ctx, append(slices.Clone(b.errs), a.unheard()...))
	if b.pending() == 0 && len(b.errs) > 0 && !slices.ContainsFunc(b.errs, func(e error) bool { return errors.Is(e, locking.ErrUnreachable) }) {
		a.takeBack = true // the masters refuse it for good
		return fmt.Errorf("%s: %w", a.op(), err)
	}
	return fmt.Errorf("%s: %w: %d of %d promised, and %d are needed%s: %w", a.op(), locking.ErrUnreachable, b.yes, n, majority(n), b.others(), err)
}

// others says what the masters answered that have not promised.
func (b *ballot) others() string {
	var text strings.Builder
	for _, c := range []struct {
		n    int
		what string
	}{
		{len(b.claims), "held by others"}, {b.returned, "given back to"}, {b.amnesiac - b.empty, "without their state"}, {b.empty, "new"},
		{b.tooFar, "with a clock an hour behind After"}, {len(b.errs) + b.pending(), "silent"},
	} {
		if c.n > 0 {
			fmt.Fprintf(&text, ", %d %s", c.n, c.what)
		}
	}
	return text.String()
}
