package zklock

import (
	"time"

	"github.com/go-zookeeper/zk"
)

// Remembered returns how many acquisitions the driver has in memory, besides the last that were released.
func (d *Driver) Remembered() int {
	d.leases.mu.Lock()
	defer d.leases.mu.Unlock()
	d.waiting.mu.Lock()
	defer d.waiting.mu.Unlock()
	return len(d.leases.all) + len(d.waiting.places) + len(d.waiting.waiters)
}

// Queue returns the owners of waiters' nodes in the order of the queue.
func Queue(nodes ...string) (owners []string) {
	for _, p := range readView(nodes, new(zk.Stat)).queue {
		owners = append(owners, p.owner)
	}
	return owners
}

// SessionTimeout is sessionTimeout.
func SessionTimeout(d time.Duration) time.Duration { return sessionTimeout(d) }
