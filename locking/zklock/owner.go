package zklock

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/escapement/escapement/locking"
)

// Owner implements locking.Driver.
func (d *Driver) Owner(ctx context.Context, name string) (locking.Ownership, error) {
	for try := 1; ; {
		o, _, err := d.owner(ctx, name)
		switch {
		case errors.Is(err, errAgain):
		case repeated(ctx, try, err):
			try++
		default:
			return o, err
		}
	}
}

// owner is Owner, with the holder's node. errAgain: the lock has changed hands meanwhile.
func (d *Driver) owner(ctx context.Context, name string) (locking.Ownership, node, error) {
	o := locking.Ownership{Name: name}
	s, err := d.waitSession()
	if err != nil {
		return o, node{}, err
	}
	v, err := d.readView(ctx, s, name, true)
	if o.Waiters = len(v.queue); err != nil || !v.held() {
		return o, node{}, err
	}
	n, err := get(ctx, s, d.heldPath(name, v.holders[0]))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return o, node{}, errAgain
	case err != nil:
		return o, node{}, err
	}
	r := readRecord(n.data)
	o.Owner, o.Holder, o.Token, o.Left, o.Revoked = v.holders[0], r.Holder, r.token(n.stat), r.left(n.stat), r.Revoked
	return o, n, nil
}

// Revoke implements locking.Driver.
func (d *Driver) Revoke(ctx context.Context, name string, token locking.Token) error {
	for try := 1; ; {
		o, n, err := d.owner(ctx, name)
		if err == nil {
			if !o.Held() || o.Token != token {
				return fmt.Errorf("revoke at zookeeper: %w", locking.ErrLost)
			}
			err = d.markRevoked(ctx, d.heldPath(name, o.Owner), n)
		}
		switch {
		case errors.Is(err, errAgain):
		case repeated(ctx, try, err):
			try++
		default:
			return err
		}
	}
}

// markRevoked returns errAgain when n was renewed meanwhile.
func (d *Driver) markRevoked(ctx context.Context, path string, n node) error {
	s, err := d.waitSession()
	if err != nil {
		return err
	}
	r := readRecord(n.data)
	r.Revoked = true
	if _, err = set(ctx, s, path, r.encode(), n.stat.Version); changed(err) {
		return errAgain
	}
	return err
}
