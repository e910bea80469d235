package etcdlock

import (
	"context"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// maxCleaning bounds the leases that are being revoked. Further ones lapse by themselves.
	maxCleaning = 1000

	cleanTimeout = time.Second
)

// cleaner revokes unneeded leases, in the background. It tries once: a lease that stays lapses.
type cleaner struct {
	leases pb.LeaseClient

	mu      sync.Mutex
	running sync.WaitGroup
	pending map[clientv3.LeaseID]chan struct{} // closed when the try is over
}

func newCleaner(leases pb.LeaseClient) *cleaner {
	return &cleaner{leases: leases, pending: make(map[clientv3.LeaseID]chan struct{})}
}

func (c *cleaner) revoke(ids ...clientv3.LeaseID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if id == clientv3.NoLease || c.pending[id] != nil || len(c.pending) >= maxCleaning {
			continue
		}
		c.pending[id] = make(chan struct{})
		c.running.Go(func() { c.clean(id) })
	}
}

func (c *cleaner) clean(id clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	_, _ = c.leases.LeaseRevoke(clientv3.WithRequireLeader(ctx), &pb.LeaseRevokeRequest{ID: int64(id)}) // else it lapses
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.pending[id])
	delete(c.pending, id)
}

// await returns when id is not being revoked. An owner that acquires once more has the same lease.
func (c *cleaner) await(ctx context.Context, id clientv3.LeaseID) error {
	c.mu.Lock()
	done := c.pending[id]
	c.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *cleaner) wait() { c.running.Wait() }
