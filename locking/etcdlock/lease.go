package etcdlock

import (
	"context"
	"fmt"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// seconds rounds a time up to the whole seconds of etcd's leases.
func seconds(d time.Duration) int64 { return max(int64((d+time.Second-1)/time.Second), 1) }

// alive is the answer to one keep-alive.
type alive struct {
	seconds int64  // the lease's length; 0: there is no such lease
	term    uint64 // of the leader, in the answering member's view
}

// keepAlive renews leases, which then last their length, counted from after the call began. It is
// one round trip, whatever their number.
//
// A leader that was replaced a moment ago, and has not noticed, answers too, and its answer means
// nothing. So an answer counts only together with a later read or write of the same term: see
// sameTerm.
func (d *Driver) keepAlive(ctx context.Context, ids []clientv3.LeaseID) ([]alive, error) {
	return attempt(ctx, func() ([]alive, error) {
		ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		defer cancel()
		stream, err := d.leases.LeaseKeepAlive(ctx)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if err := stream.Send(&pb.LeaseKeepAliveRequest{ID: int64(id)}); err != nil {
				break // Recv has the reason
			}
		}
		_ = stream.CloseSend() // Recv has the reason
		out := make([]alive, len(ids))
		for i, id := range ids {
			reply, err := stream.Recv()
			if err != nil {
				return nil, err
			}
			if reply.GetID() != int64(id) {
				return nil, fmt.Errorf("keep-alive of lease %x was answered for lease %x", int64(id), reply.GetID())
			}
			out[i] = alive{max(reply.GetTTL(), 0), reply.GetHeader().GetRaftTerm()}
		}
		_, _ = stream.Recv() // the end of the stream: etcd logs a broken stream
		return out, nil
	})
}

// sameTerm reports whether a keep-alive counts, given the term in the answer to a later request
// that went through a majority. Term 0 stands for a new lease, whose grant went through a majority
// itself.
func sameTerm(keptAlive, later uint64) bool { return keptAlive == 0 || keptAlive == later }

// ensure makes a lease last at least so many seconds, counted from after the call began. known: it probably exists.
// When it exists with a shorter length, it stays as it is: the answer has its length.
func (d *Driver) ensure(ctx context.Context, id clientv3.LeaseID, length int64, known bool) (alive, error) {
	if err := d.cleaner.await(ctx, id); err != nil {
		return alive{}, err
	}
	for range 3 { // a lease may lapse between the two requests
		if !known {
			err := d.grant(ctx, id, length)
			if err == nil {
				return alive{seconds: length}, nil
			}
			if !is(err, rpctypes.ErrLeaseExist) {
				return alive{}, err
			}
		}
		got, err := d.keepAlive(ctx, []clientv3.LeaseID{id})
		if err != nil {
			return alive{}, err
		}
		if got[0].seconds > 0 {
			return got[0], nil
		}
		known = false
	}
	return alive{}, fmt.Errorf("lease %x exists for a grant and not for a keep-alive", int64(id))
}

func (d *Driver) grant(ctx context.Context, id clientv3.LeaseID, length int64) error {
	_, err := attempt(ctx, func() (*pb.LeaseGrantResponse, error) {
		return d.leases.LeaseGrant(clientv3.WithRequireLeader(ctx), &pb.LeaseGrantRequest{ID: int64(id), TTL: length})
	})
	return err
}

// holdLease makes the lease for a lock that owner holds for length seconds.
func (d *Driver) holdLease(ctx context.Context, name, owner string, length int64, known bool) (clientv3.LeaseID, alive, error) {
	id := d.leaseID(name, owner, holding)
	got, err := d.ensure(ctx, id, length, known)
	if err == nil && got.seconds < length { // an earlier request of this owner had a shorter length
		id = d.leaseID(name, owner, resized(length))
		got, err = d.ensure(ctx, id, length, false)
	}
	return id, got, err
}

// left returns how long a lease lasts for other owners: rounded up to seconds. 0: it has lapsed.
func (d *Driver) left(ctx context.Context, id int64) (time.Duration, error) {
	if id == 0 { // of a key that something else wrote
		return 0, nil
	}
	reply, err := attempt(ctx, func() (*clientv3.LeaseTimeToLiveResponse, error) {
		return d.client.TimeToLive(clientv3.WithRequireLeader(ctx), clientv3.LeaseID(id))
	})
	if err != nil {
		return 0, err
	}
	if reply.TTL < 0 { // lapsed; its key goes in a moment
		return time.Millisecond, nil
	}
	return time.Duration(min(reply.TTL+1, reply.GrantedTTL)) * time.Second, nil
}
