package etcdlock

import (
	"fmt"
	"slices"
	"strconv"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// view is a lock at one revision, as one of its owners sees it.
type view struct {
	revision int64
	term     uint64
	holder   *mvccpb.KeyValue   // nil: the lock is free
	queue    []*mvccpb.KeyValue // keys only, in order; those up to the owner's, or the first
	place    int                // of the owner in the queue, from 1; 0: none
	released bool               // the owner was the last to release
	offset   offset
}

// lookOps is the number of operations of a look.
const lookOps = 4

// readOps returns the operations that read a view.
func (a *acquisition) readOps() []clientv3.Op {
	queue := []clientv3.OpOption{clientv3.WithPrefix(), clientv3.WithKeysOnly(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend)}
	switch {
	case a.created > 0:
		queue = append(queue, clientv3.WithMaxCreateRev(a.created))
	case !a.r.Queue:
		queue = append(queue, clientv3.WithLimit(1))
	}
	return []clientv3.Op{
		clientv3.OpGet(a.keys.hold, clientv3.WithPrefix(), clientv3.WithLimit(1)),
		clientv3.OpGet(a.keys.queue, queue...),
		clientv3.OpGet(a.keys.released),
		clientv3.OpGet(offsetKey(a.d.prefix)),
	}
}

// read reads the view at the end of a transaction's answers.
func (a *acquisition) read(reply *clientv3.TxnResponse) (view, error) {
	answers := reply.Responses[len(reply.Responses)-lookOps:]
	v := view{revision: reply.Header.GetRevision(), term: reply.Header.GetRaftTerm()}
	v.holder = one(answers[0])
	v.queue = answers[1].GetResponseRange().GetKvs()
	v.place = 1 + slices.IndexFunc(v.queue, func(kv *mvccpb.KeyValue) bool { return string(kv.Key) == a.place })
	if kv := one(answers[2]); kv != nil {
		v.released = string(kv.Value) == a.r.Owner
	}
	var err error
	v.offset, err = readOffset(one(answers[3]))
	return v, err
}

// one returns the first key that was read, or nil.
func one(answer *pb.ResponseOp) *mvccpb.KeyValue {
	if kvs := answer.GetResponseRange().GetKvs(); len(kvs) > 0 {
		return kvs[0]
	}
	return nil
}

func readOffset(kv *mvccpb.KeyValue) (offset, error) {
	if kv == nil {
		return offset{}, nil
	}
	n, err := strconv.ParseInt(string(kv.Value), 10, 64)
	if err != nil || n < 0 {
		return offset{}, fmt.Errorf("key %s has the value %q, and no token can be made: write a number into it, as large as the largest token that a guard has seen", kv.Key, kv.Value)
	}
	return offset{n, kv.ModRevision}, nil
}
