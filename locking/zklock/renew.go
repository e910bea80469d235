package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/escapement/escapement/locking"
)

// Renew implements locking.Renewer. Each lock takes a read and a write; the reads of all locks are
// sent together, and so are the writes. The write shows that the session and the node exist, and
// begins another session time-out.
func (d *Driver) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	if d.refused != nil {
		return nil, d.refused
	}
	answers, errs := make([]locking.RenewAnswer, len(batch)), make([]error, len(batch))
	var all sync.WaitGroup
	for i, r := range batch {
		all.Go(func() { answers[i], errs[i] = d.renew(ctx, r) })
	}
	all.Wait()
	return answers, cmp.Or(errs...)
}

func (d *Driver) renew(ctx context.Context, r locking.Renewal) (locking.RenewAnswer, error) {
	k := key{r.Name, r.Owner}
	l := d.leases.renewing(k)
	if l == nil {
		return locking.Gone, nil
	}
	asked := time.Now()
	if err := l.session.allows(r.TTL, r.Delay); err != nil {
		d.leases.end(l, time.Time{})
		return locking.Unknown, err
	}
	_, answer, err := d.touch(ctx, l.session, k, r.Token, func(rec *record) { rec.TTL, rec.Delay = r.TTL, r.Delay })
	ends := time.Time{}
	if answer == locking.Renewed {
		ends = asked.Add(r.TTL + r.Delay)
	}
	d.leases.end(l, ends)
	return answer, err
}

// touch changes the record of an owner's node. Gone: the owner has no node in this session, or one with another token than
// want; 0 is any.
func (d *Driver) touch(ctx context.Context, s *session, k key, want locking.Token, change func(*record)) (locking.Token, locking.RenewAnswer, error) {
	path := d.heldPath(k.name, k.owner)
	for try := 1; ; {
		n, err := get(ctx, s, path)
		if err == nil {
			r := readRecord(n.data)
			token := r.token(n.stat)
			switch {
			case n.stat.EphemeralOwner != s.zk.SessionID() || want != 0 && token != want:
				return 0, locking.Gone, nil
			case r.Revoked:
				return 0, locking.Revoked, nil
			}
			change(&r)
			if _, err = set(ctx, s, path, r.encode(), n.stat.Version); err == nil {
				return token, locking.Renewed, nil
			}
		}
		switch {
		case errors.Is(err, zk.ErrNoNode):
			return 0, locking.Gone, nil
		case errors.Is(err, zk.ErrBadVersion): // revoked meanwhile, or an earlier request has arrived
		case repeated(ctx, try, err):
			try++
		default:
			return 0, locking.Unknown, err
		}
	}
}

// Release implements locking.Driver.
func (d *Driver) Release(ctx context.Context, name, owner string) error {
	k := key{name, owner}
	if d.refused != nil {
		return d.refused
	}
	if l := d.leases.get(k); l != nil {
		for try := 1; ; try++ {
			err := remove(ctx, l.session, d.heldPath(name, owner))
			if err == nil {
				d.released.add(k)
				d.leases.remove(l)
				return nil
			}
			if errors.Is(err, zk.ErrNoNode) {
				break // the timer of the lease removes a node that an earlier request may create
			}
			if errors.Is(err, locking.ErrUnreachable) {
				d.released.add(k) // unless a later look finds the node
			}
			if !repeated(ctx, try, err) {
				return err
			}
		}
	}
	if d.released.has(k) {
		return nil
	}
	if err := d.leave(ctx, k); err != nil {
		return err
	}
	return fmt.Errorf("release at zookeeper: %w", locking.ErrLost)
}
