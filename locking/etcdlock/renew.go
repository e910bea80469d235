package etcdlock

import (
	"context"
	"errors"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/escapement/escapement/locking"
)

const (
	// renewalsAtOnce is how many renewals share a round trip: etcd allows 128 operations in a transaction.
	renewalsAtOnce = 100

	// roundsAtOnce bounds the concurrent round trips of one Renew.
	roundsAtOnce = 8
)

var errLeaderChanged = errors.New("the cluster has changed its leader meanwhile, so that a keep-alive may not count")

// Renew implements locking.Renewer. A hundred renewals take two round trips: the keep-alives, and one transaction
// that reads the keys.
func (d *Driver) Renew(ctx context.Context, batch []locking.Renewal) ([]locking.RenewAnswer, error) {
	if d.refused != nil {
		return nil, d.refused
	}
	answers := make([]locking.RenewAnswer, len(batch))
	errs := make([]error, len(batch))
	slots := make(chan struct{}, roundsAtOnce)
	var rounds sync.WaitGroup
	for from := 0; from < len(batch); from += renewalsAtOnce {
		to := min(from+renewalsAtOnce, len(batch))
		slots <- struct{}{}
		rounds.Go(func() {
			errs[from] = d.renew(ctx, batch[from:to], answers[from:to])
			<-slots
		})
	}
	rounds.Wait()
	for _, err := range errs {
		if err != nil {
			return answers, explain("renew", err)
		}
	}
	return answers, nil
}

// renew answers some renewals. The keep-alives come first, so that the keys prove them: see keepAlive.
func (d *Driver) renew(ctx context.Context, batch []locking.Renewal, answers []locking.RenewAnswer) error {
	ids := make([]clientv3.LeaseID, len(batch))
	reads := make([]clientv3.Op, len(batch))
	for i, r := range batch {
		ids[i] = d.leaseID(r.Name, r.Owner, holding)
		reads[i] = clientv3.OpGet(keysOf(d.prefix, r.Name).hold + escaped(r.Owner))
	}
	kept, err := d.keepAlive(ctx, ids)
	if err != nil {
		return err
	}
	reply, err := d.commit(ctx, nil, reads, nil)
	if err != nil {
		return err
	}
	var first error
	for i, r := range batch {
		length := seconds(r.TTL + r.Delay)
		kv := one(reply.Responses[i])
		switch {
		case kv == nil || tokenOf(kv) != r.Token:
			answers[i] = locking.Gone
		case readRecord(kv).Revoked:
			answers[i] = locking.Revoked
		case kv.Lease != int64(ids[i]) || kept[i].seconds < length:
			answers[i], err = d.relet(ctx, r.Name, r.Owner, kv, length)
		case !sameTerm(kept[i].term, reply.Header.GetRaftTerm()):
			err = errLeaderChanged
		default:
			answers[i] = locking.Renewed
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// relet puts a holder's key on a lease of another length. Its create revision, and so its token,
// stays.
func (d *Driver) relet(ctx context.Context, name, owner string, kv *mvccpb.KeyValue, length int64) (locking.RenewAnswer, error) {
	id, key := d.leaseID(name, owner, resized(length)), string(kv.Key)
	kept, err := d.ensure(ctx, id, length, kv.Lease == int64(id))
	if err != nil {
		return locking.Unknown, err
	}
	reply, err := d.commit(ctx, []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", kv.CreateRevision)},
		[]clientv3.Op{clientv3.OpPut(key, "", clientv3.WithIgnoreValue(), clientv3.WithLease(id))}, nil)
	switch {
	case err != nil:
		return locking.Unknown, err
	case !reply.Succeeded:
		return locking.Gone, nil
	case !sameTerm(kept.term, reply.Header.GetRaftTerm()):
		return locking.Unknown, errLeaderChanged
	}
	if kv.Lease != int64(id) {
		d.cleaner.revoke(clientv3.LeaseID(kv.Lease))
	}
	return locking.Renewed, nil
}
