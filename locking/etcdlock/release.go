package etcdlock

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/escapement/escapement/locking"
)

// tombstoneKeep is how long etcd keeps the last owner that released a lock: at least half of it.
const tombstoneKeep = 10 * time.Minute

// tombstones is the lease of the released keys that a driver writes.
type tombstones struct {
	turn    chan struct{} // a lock, capacity 1, for the caller that makes the lease
	lease   clientv3.LeaseID
	granted time.Time // zero: there is no lease, or its grant was not answered
}

// Release implements locking.Driver.
func (d *Driver) Release(ctx context.Context, name, owner string) error {
	if d.refused != nil {
		return d.refused
	}
	keys := keysOf(d.prefix, name)
	hold, place := keys.hold+escaped(owner), keys.queue+escaped(owner)
	ours := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(hold), ">", 0)}
	for try := 0; ; try++ {
		keep, err := d.tombstoneLease(ctx)
		if err != nil {
			return explain("release", err)
		}
		reply, err := d.commit(ctx, ours, []clientv3.Op{
			clientv3.OpDelete(hold, clientv3.WithPrevKV()),
			clientv3.OpDelete(place, clientv3.WithPrevKV()),
			clientv3.OpPut(keys.released, owner, clientv3.WithLease(keep)),
		}, []clientv3.Op{
			clientv3.OpDelete(place, clientv3.WithPrevKV()),
			clientv3.OpGet(keys.released),
		})
		if is(err, rpctypes.ErrLeaseNotFound) && try == 0 {
			d.forgetTombstones(keep)
			continue
		}
		if err != nil {
			return explain("release", err)
		}
		d.cleanUp(name, owner, reply)
		if reply.Succeeded {
			return nil
		}
		if kv := one(reply.Responses[1]); kv != nil && string(kv.Value) == owner {
			return nil // by an earlier call
		}
		return fmt.Errorf("release at etcd: %w: this owner does not hold it", locking.ErrLost)
	}
}

// cleanUp revokes the leases of an owner that has released, and so the keys of a late copy of its
// acquire.
func (d *Driver) cleanUp(name, owner string, reply *clientv3.TxnResponse) {
	ids := []clientv3.LeaseID{d.leaseID(name, owner, holding)}
	for _, answer := range reply.Responses {
		for _, kv := range answer.GetResponseDeleteRange().GetPrevKvs() {
			if id := clientv3.LeaseID(kv.Lease); id != ids[0] {
				ids = append(ids, id)
			}
		}
	}
	d.cleaner.revoke(ids...)
}

// tombstoneLease returns a lease for a released key. It is not renewed: a new one replaces it.
func (d *Driver) tombstoneLease(ctx context.Context) (clientv3.LeaseID, error) {
	select {
	case d.tombstones.turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-d.tombstones.turn }()
	t := &d.tombstones
	if !t.granted.IsZero() && time.Since(t.granted) < tombstoneKeep/2 {
		return t.lease, nil
	}
	if !t.granted.IsZero() || t.lease == 0 { // else a grant without an answer is repeated
		t.lease, t.granted = newLeaseID(), time.Time{}
	}
	asked := time.Now()
	if _, err := d.ensure(ctx, t.lease, seconds(tombstoneKeep), false); err != nil {
		return 0, err
	}
	t.granted = asked
	return t.lease, nil
}

// forgetTombstones drops a lease that etcd has lost.
func (d *Driver) forgetTombstones(lease clientv3.LeaseID) {
	d.tombstones.turn <- struct{}{} // held for one call at most
	defer func() { <-d.tombstones.turn }()
	if t := &d.tombstones; t.lease == lease {
		t.lease, t.granted = 0, time.Time{}
	}
}

// Revoke implements locking.Driver.
func (d *Driver) Revoke(ctx context.Context, name string, token locking.Token) error {
	if d.refused != nil {
		return d.refused
	}
	keys := keysOf(d.prefix, name)
	read := []clientv3.Op{clientv3.OpGet(keys.hold, clientv3.WithPrefix(), clientv3.WithLimit(1))}
	reply, err := d.commit(ctx, nil, read, nil)
	for range maxSteps {
		if err != nil {
			return explain("revoke", err)
		}
		kv := one(reply.Responses[0])
		if kv == nil || tokenOf(kv) != token {
			return fmt.Errorf("revoke at etcd: %w: another grant holds it, or none", locking.ErrLost)
		}
		r := readRecord(kv)
		if r.Revoked {
			return nil
		}
		r.Revoked = true
		reply, err = d.commit(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "=", kv.ModRevision)},
			[]clientv3.Op{clientv3.OpPut(string(kv.Key), r.encode(), clientv3.WithIgnoreLease())}, read)
		if err == nil && reply.Succeeded {
			return nil
		}
	}
	return explain("revoke", fmt.Errorf("the lock of token %d changed each time", token))
}

// Owner implements locking.Driver. Left is rounded up to seconds.
func (d *Driver) Owner(ctx context.Context, name string) (locking.Ownership, error) {
	if d.refused != nil {
		return locking.Ownership{}, d.refused
	}
	keys := keysOf(d.prefix, name)
	reply, err := d.commit(ctx, nil, []clientv3.Op{
		clientv3.OpGet(keys.hold, clientv3.WithPrefix(), clientv3.WithLimit(1)),
		clientv3.OpGet(keys.queue, clientv3.WithPrefix(), clientv3.WithCountOnly()),
	}, nil)
	if err != nil {
		return locking.Ownership{}, explain("owner", err)
	}
	o := locking.Ownership{Name: name, Waiters: int(reply.Responses[1].GetResponseRange().GetCount())}
	kv := one(reply.Responses[0])
	if kv == nil {
		return o, nil
	}
	left, err := d.left(ctx, kv.Lease)
	if err != nil {
		return locking.Ownership{}, explain("owner", err)
	}
	return ownership(o, keys, kv, left), nil
}

// ownership adds the holder to o.
func ownership(o locking.Ownership, keys lockKeys, kv *mvccpb.KeyValue, left time.Duration) locking.Ownership {
	r := readRecord(kv)
	o.Owner, o.Holder, o.Token, o.Revoked, o.Left = ownerOf(keys.hold, kv.Key), r.Holder, tokenOf(kv), r.Revoked, left
	return o
}
