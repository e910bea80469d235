package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/escapement/escapement/locking"
)

// maxQueue bounds a lock's queue. Further waiters poll, with jitter.
const maxQueue = 1000

// errAgain means that the lock has changed since it was looked at.
var errAgain = errors.New("changed meanwhile")

// Acquire implements locking.Driver.
func (d *Driver) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	s, err := d.session(r.TTL + r.Delay)
	if err != nil {
		return locking.Grant{}, err
	}
	a := acquisition{driver: d, session: s, request: r, key: key{r.Name, r.Owner}}
	for try := 1; ; try++ {
		g, err := a.run(ctx)
		if !repeated(ctx, try, err) {
			return g, err
		}
	}
}

// acquisition is one Acquire. It may be repeated: the effect of an earlier request is seen in the
// store.
type acquisition struct {
	driver  *Driver
	session *session
	request locking.Request
	key     key

	asked time.Time     // before the requests of this round
	slept time.Duration // see locking.Grant.Slept
}

// run repeats round until the lock has not changed meanwhile.
func (a *acquisition) run(ctx context.Context) (locking.Grant, error) {
	for latest := false; ; latest = true {
		g, err := a.round(ctx, latest)
		if !errors.Is(err, errAgain) {
			return g, err
		}
	}
}

// round reads the lock once and acts on the result. A held lock is reported, and its queue joined,
// only after a read with latest.
func (a *acquisition) round(ctx context.Context, latest bool) (locking.Grant, error) {
	d, r := a.driver, a.request
	a.asked, a.slept = time.Now(), locking.Slept()
	v, err := d.readView(ctx, a.session, r.Name, latest)
	if err != nil {
		return locking.Grant{}, err
	}
	if err := a.session.allows(r.TTL, r.Delay); err != nil {
		return locking.Grant{}, err
	}
	switch first := v.placeOf(r.Owner) == 1 || len(v.queue) == 0; {
	case slices.Contains(v.holders, r.Owner):
		return a.again(ctx, len(v.holders) > 1)
	case d.released.has(a.key):
		return locking.Grant{}, fmt.Errorf("%w: this owner has released it", locking.ErrLost)
	case !v.held() && first:
		return a.take(ctx, v)
	case v.held() && r.From > 0:
		holder, err := get(ctx, a.session, d.heldPath(r.Name, v.holders[0]))
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return locking.Grant{}, errAgain
		case err != nil:
			return locking.Grant{}, err
		case readRecord(holder.data).token(holder.stat) == r.From:
			return a.take(ctx, v)
		}
	}
	if !latest {
		return locking.Grant{}, errAgain
	}
	if r.Queue && v.placeOf(r.Owner) == 0 && len(v.queue) < maxQueue {
		return locking.Grant{}, d.join(ctx, a.key)
	}
	return locking.Grant{}, a.heldError(ctx, v)
}

func (a *acquisition) record(base int64) record {
	return record{Holder: a.request.Holder, TTL: a.request.TTL, Delay: a.request.Delay, Base: base}
}

func (a *acquisition) ends() time.Time { return a.asked.Add(a.request.TTL + a.request.Delay) }

func (a *acquisition) granted(token locking.Token) locking.Grant {
	r := a.request
	return locking.Grant{Name: r.Name, Owner: r.Owner, Token: token, TTL: r.TTL, Delay: r.Delay, Asked: a.asked, Slept: a.slept}
}

// again repeats the grant of an earlier request of this owner, for another TTL. With others, see
// take, the owner withdraws.
func (a *acquisition) again(ctx context.Context, others bool) (locking.Grant, error) {
	d := a.driver
	l, _ := d.begin(a.session, a.key, a.ends())
	if l == nil {
		return locking.Grant{}, errRemoving
	}
	//guard:zk-alone P4 an owner beside another one withdraws
	if others {
		return locking.Grant{}, a.withdraw(ctx, l)
	}
	token, answer, err := d.touch(ctx, a.session, a.key, 0, func(r *record) { *r = a.record(r.Base) })
	switch answer {
	case locking.Renewed:
		d.released.remove(a.key)
		d.leases.end(l, a.ends())
		return a.granted(token), nil
	case locking.Gone:
		err = errAgain
	case locking.Revoked:
		err = fmt.Errorf("%w: somebody has asked this holder to end", locking.ErrLost)
	case locking.Unknown:
	}
	d.leases.end(l, time.Time{})
	return locking.Grant{}, err
}

// errRemoving is returned for a repeated acquire whose lease has lapsed.
var errRemoving = fmt.Errorf("%w: an earlier lease of this owner is being removed", locking.ErrUnreachable)

// withdraw removes the owner's node, and returns errAgain for another look.
func (a *acquisition) withdraw(ctx context.Context, l *lease) error {
	d := a.driver
	err := remove(ctx, a.session, d.heldPath(a.request.Name, a.request.Owner))
	d.leases.end(l, time.Time{})
	if err != nil && !errors.Is(err, zk.ErrNoNode) {
		return err
	}
	d.leases.remove(l)
	return errAgain
}

// take creates the holder's node in one transaction, which fails if there was another grant since v was read: each grant
// changes the version of the lock's node. The transaction also checks the base of the token, removes the waiter's node,
// and on a take-over the node of the holder before.
//
// ZooKeeper may have removed the empty container since, and another owner may have made and taken a
// new node with the version in v. No transaction can check that, but the answer has the czxid of
// the lock's node. If the czxid has changed, another owner may hold the lock, and this one
// withdraws before its grant is returned.
func (a *acquisition) take(ctx context.Context, v view) (locking.Grant, error) {
	d, r, s := a.driver, a.request, a.session
	base, err := d.tokens.get(ctx, s, r.After)
	if err == nil && !v.exists {
		err = d.createLock(ctx, s, r.Name)
	}
	if changed(err) {
		d.tokens.forget()
		return locking.Grant{}, errAgain
	}
	if err != nil {
		return locking.Grant{}, err
	}
	lock, held := d.lockPath(r.Name), d.heldPath(r.Name, r.Owner)
	ops := append(base.checks(d.root), // the first two
		&zk.SetDataRequest{Path: lock, Version: v.version},
		&zk.CreateRequest{Path: held, Data: a.record(base.value).encode(), Acl: d.client.acl(), Flags: zk.FlagEphemeral})
	if v.held() {
		ops = append(ops, &zk.DeleteRequest{Path: d.heldPath(r.Name, v.holders[0]), Version: -1})
	}
	for _, p := range v.queue {
		if p.owner == r.Owner {
			ops = append(ops, &zk.DeleteRequest{Path: lock + "/" + p.node, Version: -1})
		}
	}
	l, fresh := d.begin(s, a.key, a.ends())
	if l == nil {
		return locking.Grant{}, errRemoving
	}
	done, err := call(ctx, s, "acquire", func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(ops...) })
	if err != nil {
		d.leases.end(l, time.Time{})
		if changed(err) {
			if len(done) < 2 || done[0].Error != nil || done[1].Error != nil {
				d.tokens.forget()
			}
			if fresh {
				d.leases.remove(l)
			}
			err = errAgain
		}
		return locking.Grant{}, err
	}
	d.forgetPlace(a.key)
	//guard:zk-lock-replaced P4 of two owners who took a lock whose node was made anew meanwhile, neither believes it
	if v.exists && done[2].Stat.Czxid != v.created {
		return locking.Grant{}, a.withdraw(ctx, l)
	}
	d.leases.end(l, a.ends())
	token := base.value + done[2].Stat.Mzxid // of the transaction, and so the czxid of the node that it created
	if token <= 0 || token >= 1<<53 {
		err := fmt.Errorf("the token would be %d, which is not below 2^53; see the package's comment on tokens", token)
		return locking.Grant{}, errors.Join(err, d.Release(ctx, r.Name, r.Owner))
	}
	return a.granted(token), nil
}

// createLock creates the node of a lock: a container, which ZooKeeper removes when it is empty for a while.
func (d *Driver) createLock(ctx context.Context, s *session, name string) error {
	_, err := call(ctx, s, "create lock", func(c *zk.Conn) (string, error) {
		return c.CreateContainer(d.lockPath(name), nil, zk.FlagContainer, d.client.acl())
	})
	return err
}

// heldError returns an error with the holder of the lock, or with the first waiter of a free one.
func (a *acquisition) heldError(ctx context.Context, v view) error {
	d, name := a.driver, a.request.Name
	place := v.placeOf(a.request.Owner)
	if place > 0 {
		d.keepPlace(a.key)
		var before string
		if place > 1 {
			before = d.lockPath(name) + "/" + v.queue[place-2].node
		} else { // held, or it would have been taken
			before = d.heldPath(name, v.holders[0])
		}
		if err := d.watch(a.key, before); err != nil {
			return err
		}
	}
	if !v.held() { // it is the turn of the first waiter
		return &locking.HeldError{Name: name, Owner: v.queue[0].owner, Place: place}
	}
	n, err := get(ctx, a.session, d.heldPath(name, v.holders[0]))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return errAgain
	case err != nil:
		return err
	}
	holder := readRecord(n.data)
	return &locking.HeldError{Name: name, Owner: v.holders[0], Holder: holder.Holder, Until: holder.left(n.stat), Place: place}
}
