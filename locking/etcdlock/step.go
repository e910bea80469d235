package etcdlock

import (
	"context"
	"fmt"
	"strconv"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/escapement/escapement/locking"
)

// step is one transaction of an acquisition. Its answers end with a view, unless it grants.
type step struct {
	conditions []clientv3.Cmp
	then       []clientv3.Op
	grants     bool  // when the conditions hold and the owner has not released
	offset     int64 // of the token that it grants
	end        bool  // nothing more to do
}

func (a *acquisition) readStep() step { return step{then: a.readOps()} }

// take takes a free lock: as the first waiter, or with an empty queue.
func (a *acquisition) take(o offset) step {
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(a.keys.hold).WithPrefix(), "=", 0)}
	if a.created > 0 {
		conditions = append(conditions,
			clientv3.Compare(clientv3.CreateRevision(a.place), "=", a.created),
			clientv3.Compare(clientv3.CreateRevision(a.keys.queue).WithPrefix(), ">", a.created-1))
	} else {
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(a.keys.queue).WithPrefix(), "=", 0))
	}
	return a.grantStep(conditions, o)
}

// takeOver takes the lock from its holder, whatever the queue.
func (a *acquisition) takeOver(v view) step {
	key := string(v.holder.Key)
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", v.holder.CreateRevision)}
	return a.grantStep(conditions, v.offset, clientv3.OpDelete(key))
}

// grantStep creates the owner's key in the holder's range, if the token's offset is still the one in o.
func (a *acquisition) grantStep(conditions []clientv3.Cmp, o offset, then ...clientv3.Op) step {
	then = append(then, clientv3.OpPut(a.hold, record{Holder: a.r.Holder, Offset: o.value}.encode(), clientv3.WithLease(a.lease)))
	if a.r.Queue {
		then = append(then, clientv3.OpDelete(a.place))
	}
	return step{
		conditions: append(conditions, clientv3.Compare(clientv3.ModRevision(offsetKey(a.d.prefix)), "=", o.mod)),
		then:       []clientv3.Op{a.unlessReleased(then...)},
		grants:     true, offset: o.value,
	}
}

// unlessReleased makes operations depend on this owner not being the last that released: the
// request could be a late copy. The answer is a transaction's, which succeeds when the operations
// were not carried out.
func (a *acquisition) unlessReleased(then ...clientv3.Op) clientv3.Op {
	return clientv3.OpTxn([]clientv3.Cmp{clientv3.Compare(clientv3.Value(a.keys.released), "=", a.r.Owner)}, nil, then)
}

// join makes the owner's key in the queue.
func (a *acquisition) join(ctx context.Context) (step, error) {
	id := a.d.leaseID(a.r.Name, a.r.Owner, queued)
	a.queues = true
	if _, err := a.d.ensure(ctx, id, seconds(locking.QueueTimeout), false); err != nil {
		return step{}, explain("acquire", err)
	}
	return step{
		conditions: []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(a.place), "=", 0)},
		then:       append([]clientv3.Op{a.unlessReleased(clientv3.OpPut(a.place, "", clientv3.WithLease(id)))}, a.readOps()...),
	}, nil
}

// remove deletes a key of the queue that has no lease, so that it would block the queue for ever: it is not a waiter's.
func (a *acquisition) remove(kv *mvccpb.KeyValue) step {
	key := string(kv.Key)
	return step{
		conditions: []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", kv.ModRevision)},
		then:       append([]clientv3.Op{clientv3.OpDelete(key)}, a.readOps()...),
	}
}

// raise raises the offset so that the next token is larger than the hint.
func (a *acquisition) raise(v view) (step, error) {
	if ahead := a.r.After - v.revision - v.offset.value; ahead > maxAhead {
		return step{}, &locking.InputError{Lock: a.r.Name, Field: "Options.After",
			Why: fmt.Sprintf("is %d, which is %d above the tokens of this cluster; at most %d is believed: give the token that the guard answered, or raise the key %s by hand",
				a.r.After, ahead, maxAhead, offsetKey(a.d.prefix))}
	}
	key := offsetKey(a.d.prefix)
	return step{
		conditions: []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(key), "=", v.offset.mod)},
		then:       append([]clientv3.Op{clientv3.OpPut(key, strconv.FormatInt(a.r.After-v.revision, 10))}, a.readOps()...),
	}, nil
}

// commit carries out one transaction.
func (d *Driver) commit(ctx context.Context, conditions []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	return attempt(ctx, func() (*clientv3.TxnResponse, error) {
		return d.client.Txn(clientv3.WithRequireLeader(ctx)).If(conditions...).Then(then...).Else(otherwise...).Commit()
	})
}
