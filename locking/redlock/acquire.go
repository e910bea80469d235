package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/internal/lockredis"
)

// Acquire implements locking.Driver. A TTL is rounded up to milliseconds, and Request.Queue is ignored.
//
// A failed attempt is withdrawn, in the background, when a master refused it. When masters only
// gave no answer, it is not withdrawn, so that the same owner may repeat the request.
func (d *driver) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	if asks := r.TTL + r.Delay; asks > d.cfg.MaxTTL {
		return locking.Grant{}, refuse(r.Name, "Options.TTL", "and Delay are %s together, more than Config.MaxTTL %s; ask for less, or raise MaxTTL", asks, d.cfg.MaxTTL)
	}
	a := &attempt{
		driver: d, request: r, number: d.nextAttempt(), asked: time.Now(), slept: locking.Slept(),
	}
	defer a.end()
	token, err := a.renewOwn(ctx)
	if token == 0 && err == nil {
		token, err = a.run(ctx)
	}
	if err != nil {
		return locking.Grant{}, err
	}
	return locking.Grant{
		Name: r.Name, Owner: r.Owner, Token: token, Delay: r.Delay,
		TTL: time.Duration(lockredis.Millis(r.TTL)) * time.Millisecond, Asked: a.asked, Slept: a.slept,
	}, nil
}

// nextAttempt returns the number of an attempt: the clock, and larger than all before in this process.
func (d *driver) nextAttempt() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.attempt = max(time.Now().UnixMicro(), d.attempt+1)
	return d.attempt
}

// attempt is one call of Acquire.
type attempt struct {
	driver   *driver
	request  locking.Request
	number   int64
	asked    time.Time // before the first request
	slept    time.Duration
	ballot   ballot
	granted  bool
	withdraw bool

	mu    sync.Mutex
	early []answer[promise] // before over
	over  bool              // the outcome is known
}

func (a *attempt) op() string {
	return fmt.Sprintf("acquire at %d redis masters", len(a.driver.masters))
}

// renewOwn renews the lock that this driver has granted to the owner, and returns its token; 0
// without a grant. A new request could return another token: another quorum can have promised a
// larger one than the quorum that granted the lock.
func (a *attempt) renewOwn(ctx context.Context) (locking.Token, error) {
	d, r := a.driver, a.request
	token := d.grants.of(r.Owner).token
	if token == 0 {
		return 0, nil
	}
	answers, err := d.Renew(ctx, []locking.Renewal{{Name: r.Name, Owner: r.Owner, Token: token, TTL: r.TTL, Delay: r.Delay}})
	if err != nil || answers[0] != locking.Renewed {
		return 0, err
	}
	return token, nil
}

// agree sends requests until a majority has promised the same token: one round or two.
func (a *attempt) agree(ctx context.Context) (locking.Token, error) {
	masters, after := a.driver.masters, a.request.After
	for {
		a.promise(ctx, masters, after)
		if dup := a.driver.sameServer(a.ballot.runIDs); dup != nil {
			a.withdraw = true
			return 0, dup
		}
		token, settled := chooseToken(len(a.driver.masters), a.ballot.tokens)
		//guard:redlock-quorum P4 a lock is granted by a majority of the masters
		if !settled {
			if !a.ballot.won() {
				return 0, a.failed()
			}
			masters, after = a.ballot.promised, token-1
			continue
		}
		return token, nil
	}
}

// run acquires the lock, unless the promises came too late.
func (a *attempt) run(ctx context.Context) (locking.Token, error) {
	r := a.request
	token, err := a.agree(ctx)
	if err != nil {
		return 0, err
	}
	if validity(r.TTL, time.Since(a.asked)+locking.Slept()-a.slept) <= 0 {
		a.withdraw = true
		return 0, fmt.Errorf("%s: %w: the answers took longer than ttl %s; use a longer TTL, or a shorter MasterTimeout", a.op(), locking.ErrUnreachable, r.TTL)
	}
	a.driver.grants.add(r.Owner, token, a.driver.nextAttempt(), r.TTL)
	a.granted = true
	return token, nil
}

// promise requests tokens larger than after from masters.
func (a *attempt) promise(ctx context.Context, masters []*master, after locking.Token) {
	d, r := a.driver, a.request
	a.ballot = newBallot(len(d.masters))
	ask(ctx, d, question[promise]{
		op: "acquire", masters: masters, timeout: d.cfg.MasterTimeout,
		call: func(ctx context.Context, m *master) (promise, error) {
			reply, err := acquireScript.Run(ctx, m.client, d.cfg.keys(r.Name),
				r.Owner, lockredis.Millis(r.TTL+r.Delay), a.number, a.asked.UnixMicro(), after, r.From,
				r.Holder, stateKeep, lockredis.Millis(d.cfg.MaxTTL)).Slice()
			if err != nil {
				return promise{}, err
			}
			return readPromise(reply)
		},
		take: a.ballot.take,
		then: a.settle,
	})
}

// settle is called after each call. With an early answer, end does the rest.
func (a *attempt) settle(p answer[promise]) {
	a.mu.Lock()
	late := a.over
	if !late {
		a.early = append(a.early, p)
	}
	a.mu.Unlock()
	d := a.driver
	if late && (a.withdraw || a.granted && d.grants.of(a.request.Owner).token == 0) { // released before this call was over
		a.takeBack(p)
	}
	if p.err == nil {
		d.noteLoss(p.master, p.value.code == codeLostState, p.value.runID)
	}
}

// end ends the attempt, and withdraws it.
func (a *attempt) end() {
	a.mu.Lock()
	a.over = true
	a.mu.Unlock()
	for _, p := range a.early {
		if a.withdraw {
			a.driver.start(func() { a.takeBack(p) })
		}
	}
}

// takeBack withdraws a promise from its master, also after an error, when the outcome is unknown.
func (a *attempt) takeBack(p answer[promise]) {
	if p.err != nil || p.value.code == codePromised {
		a.driver.repeatRelease(p.master, a.request.Name, a.request.Owner, a.number, a.granted, 0)
	}
}

// failed returns why there was no quorum of promises.
func (a *attempt) failed() error {
	b, r, n := a.ballot, a.request, len(a.driver.masters)
	a.withdraw = b.refused() > 0
	most := func(code int64) bool { return b.of[code] >= majority(n) }
	switch {
	case most(codeHeld):
		return b.heldError(r.Name)
	case most(codeTooFar):
		return refuse(r.Name, "Options.After", "is %d, more than an hour ahead of the clocks of %d masters; give the token that the guard answered", r.After, b.of[codeTooFar])
	case most(codeReturned):
		return fmt.Errorf("%s: %w: this owner has released it already", a.op(), locking.ErrLost)
	case most(codeLostState):
		return fmt.Errorf("%s: %w: %d are new, were emptied or were restarted, and grant no locks; call redlock.Bootstrap once, when no earlier lock can be in use (MaxTTL after a loss)",
			a.op(), locking.ErrUnreachable, b.of[codeLostState])
	}
	err := reason(b.errs)
	if len(b.errs) > 0 && !errors.Is(err, locking.ErrUnreachable) {
		a.withdraw = true // refused for good
		return fmt.Errorf("%s: %w", a.op(), err)
	}
	return fmt.Errorf("%s: %w: %d must promise; %d did, %d refused, %d do not vote: %w",
		a.op(), locking.ErrUnreachable, majority(n), b.of[codePromised], b.refused(), b.of[codeLostState], err)
}
