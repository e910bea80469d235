package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/escapement/escapement/locking"
)

const (
	// maxAhead is how far ahead of the store's next token a hint may be. As in redislock, whose tokens are
	// microseconds, it is an hour.
	maxAhead = locking.Token(3600 * 1e6)

	// maxSteps bounds the transactions of one Acquire. Each further one means that other owners
	// were quicker.
	maxSteps = 20
)

// acquisition is one Acquire.
type acquisition struct {
	d           *Driver
	r           locking.Request
	keys        lockKeys
	hold, place string // the owner's keys
	waiter      *waiter
	created     int64 // revision that created place; 0: not known
	queues      bool  // the lease of a place was made
	ours        bool  // the owner holds the lock
	lease       clientv3.LeaseID
	kept        alive // the answer to the last keep-alive of lease
	grant       locking.Grant
}

// Acquire implements locking.Driver. The lease in etcd has whole seconds, rounded up from TTL and Delay.
func (d *Driver) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	if d.refused != nil {
		return locking.Grant{}, d.refused
	}
	keys, owner := keysOf(d.prefix, r.Name), escaped(r.Owner)
	a := &acquisition{d: d, r: r, keys: keys, hold: keys.hold + owner, place: keys.queue + owner}
	a.grant = locking.Grant{Name: r.Name, Owner: r.Owner, TTL: r.TTL, Delay: r.Delay, Asked: time.Now(), Slept: locking.Slept()}
	if r.Queue {
		a.waiter = d.notifier.get(r.Name, r.Owner)
	}
	err := a.run(ctx)
	if err == nil {
		return a.grant, nil
	}
	if !errors.Is(err, locking.ErrUnreachable) && !a.ours && a.created == 0 {
		d.cleaner.revoke(a.lease) // no key is on it
	}
	return locking.Grant{}, err
}

func (a *acquisition) run(ctx context.Context) error {
	var hope bool
	a.created, hope = a.d.notifier.state(a.waiter)
	if err := a.renewLeases(ctx); err != nil {
		return explain("acquire", err)
	}
	next := a.readStep()
	if hope && a.r.After == 0 {
		next = a.take(a.d.knownOffset())
	}
	for range maxSteps {
		reply, err := a.d.commit(ctx, next.conditions, next.then, a.readOps())
		switch {
		case is(err, rpctypes.ErrLeaseNotFound): // it lapsed meanwhile
			if err := a.renewLeases(ctx); err != nil {
				return explain("acquire", err)
			}
			next = a.readStep()
			continue
		case err != nil:
			return explain("acquire", err)
		case reply.Succeeded && next.grants && reply.Responses[0].GetResponseTxn().GetSucceeded():
			return lost("has released it already")
		case reply.Succeeded && next.grants:
			return a.granted(reply.Header.GetRevision()+next.offset, reply.Header.GetRaftTerm())
		}
		v, err := a.read(reply)
		if err != nil {
			return fmt.Errorf("acquire at etcd: %w", err)
		}
		a.learn(v)
		if next, err = a.decide(ctx, v); err != nil || next.end {
			return err
		}
	}
	return explain("acquire", errors.New("other owners were quicker each time"))
}

// learn keeps the parts of a view that further calls need.
func (a *acquisition) learn(v view) {
	a.d.learnOffset(v.offset)
	a.created = 0
	if v.place > 0 {
		a.created, a.queues = v.queue[v.place-1].CreateRevision, true
	}
	a.d.notifier.placed(a.waiter, a.created)
}

// renewLeases makes the lease for the lock last its length from now, and the place's lease too.
func (a *acquisition) renewLeases(ctx context.Context) (err error) {
	length := seconds(a.r.TTL + a.r.Delay)
	if a.created > 0 {
		a.queues = true
		a.lease = a.d.leaseID(a.r.Name, a.r.Owner, holding)
		kept, err := a.d.keepAlive(ctx, []clientv3.LeaseID{a.d.leaseID(a.r.Name, a.r.Owner, queued), a.lease})
		if err != nil {
			return err
		}
		if kept[0].seconds == 0 { // the place is gone
			a.created = 0
		}
		if kept[1].seconds >= length {
			a.kept = kept[1]
			return nil
		}
	}
	a.lease, a.kept, err = a.d.holdLease(ctx, a.r.Name, a.r.Owner, length, false)
	return err
}

// granted ends the acquisition with a grant, unless the lease's last keep-alive proves nothing.
func (a *acquisition) granted(token locking.Token, term uint64) error {
	//guard:etcd-term P4 a keep-alive that was answered in another term than the grant proves nothing about the lease
	if !sameTerm(a.kept.term, term) {
		return explain("acquire", errLeaderChanged)
	}
	if a.queues {
		a.d.cleaner.revoke(a.d.leaseID(a.r.Name, a.r.Owner, queued))
	}
	a.grant.Token = token
	return nil
}

// decide returns the next step after a view, or the end.
func (a *acquisition) decide(ctx context.Context, v view) (step, error) {
	switch {
	case v.holder != nil && string(v.holder.Key) == a.hold:
		a.ours = true
		return step{end: true}, a.again(ctx, v)
	case v.released:
		return step{}, lost("has released it already")
	}
	takesOver := v.holder != nil && a.r.From != 0 && tokenOf(v.holder) == a.r.From
	isNext := v.holder == nil && (len(v.queue) == 0 || v.place == 1)
	switch {
	case (takesOver || isNext) && a.r.After > v.revision+v.offset.value:
		return a.raise(v)
	case takesOver:
		return a.takeOver(v), nil
	case isNext:
		return a.take(v.offset), nil
	case len(v.queue) > 0 && v.queue[0].Lease == 0:
		return a.remove(v.queue[0]), nil
	case a.r.Queue && v.place == 0:
		return a.join(ctx)
	}
	return step{}, a.held(ctx, v)
}

// again is the answer to an owner that holds the lock.
func (a *acquisition) again(ctx context.Context, v view) error {
	if readRecord(v.holder).Revoked {
		return lost("was asked to end, before it got the answer; acquire it again")
	}
	if v.holder.Lease != int64(a.lease) {
		answer, err := a.d.relet(ctx, a.r.Name, a.r.Owner, v.holder, seconds(a.r.TTL+a.r.Delay))
		switch {
		case err != nil:
			return explain("acquire", err)
		case answer != locking.Renewed:
			return lost("has lost it meanwhile")
		}
		a.kept = alive{} // relet has looked at the terms
	}
	return a.granted(tokenOf(v.holder), v.term)
}

// held describes the holder, and starts the watch for the next request.
func (a *acquisition) held(ctx context.Context, v view) error {
	e := &locking.HeldError{Name: a.r.Name, Place: v.place}
	before := v.holder
	if v.holder != nil {
		e.Owner, e.Holder = ownerOf(a.keys.hold, v.holder.Key), readRecord(v.holder).Holder
	} else {
		before = v.queue[0] // the lock is kept for the first waiter
		e.Owner = ownerOf(a.keys.queue, before.Key)
	}
	if v.place > 1 {
		before = v.queue[v.place-2]
	}
	if v.place > 0 {
		a.d.notifier.watch(a.waiter, string(before.Key), a.place)
	}
	if v.place <= 1 {
		left, err := a.d.left(ctx, before.Lease)
		if err != nil {
			return explain("acquire", err)
		}
		e.Until = left
	}
	return e
}

func lost(why string) error {
	return fmt.Errorf("acquire at etcd: %w: this owner %s", locking.ErrLost, why)
}
