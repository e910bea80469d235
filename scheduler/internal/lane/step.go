package lane

import (
	"context"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// step takes the next step with the master's current id, and returns when to check again. Only the
// lane's watch calls it.
func (f *failover) step(ctx context.Context) time.Duration {
	f.mu.Lock()
	server := f.id
	if server == ledger.Nobody {
		f.mu.Unlock()
		return assertEvery
	}
	f.notice(server)
	open := f.every(func(e *epoch) bool { return e.open == server })
	placed := f.every(func(e *epoch) bool { return e.restored == server })
	over := time.Since(f.since) >= f.l.FailoverHold
	last, may := f.allAsserted || over, f.allRestored || over
	f.mu.Unlock()
	if open {
		return f.nextCheck()
	}
	if !placed {
		placed = f.assert(ctx, server, last)
	}
	ready := placed
	//guard:grants-wait P1 a Redis that may have lost grants is asked for none before all nodes have asserted theirs
	if !may {
		ready = false
	}
	if ready && f.level(ctx, server) {
		f.release(server)
		return f.nextCheck()
	}
	wait.Signal(f.l.Beat) // others learn it, and this node learns of them
	return assertEvery
}

// notice notes that partitions have another master. The caller holds the lock.
func (f *failover) notice(server string) {
	fresh := false
	for _, e := range f.epochs {
		if e.noticed == server {
			continue
		}
		fresh = true
		e.noticed, e.restored = server, ""
		if e.asserted == server { // it has come back, and does not know what was granted meanwhile
			e.asserted = ledger.Nobody
		}
		//guard:back-is-new P1 a server that has come back is asked for nothing before runs are asserted to it
		if e.open == server {
			e.open = ledger.Nobody
		}
	}
	if fresh {
		for _, e := range f.epochs { // what they had left to restore is dropped below, so they start anew
			if e.asserted == server && e.restored != server {
				e.asserted = ledger.Nobody
			}
		}
		f.since, f.allAsserted, f.allRestored = time.Now(), false, false
		f.others, f.unrestored, f.unrestoredOf, f.behind = f.l.Nodes.Living(), nil, "", nil
		f.l.lanes.signalLost()
	}
}

// nextCheck is when a node that claims checks the master's id again: soon when the master did not
// give it. All nodes must notice a new master within FailoverHold of the first.
func (f *failover) nextCheck() time.Duration {
	if f.unidentified.Load() {
		return assertEvery
	}
	return sampleEvery
}

// release lets the node claim again from all partitions that have noticed the master.
func (f *failover) release(server string) {
	f.mu.Lock()
	first, held := true, time.Since(f.since)
	for _, e := range f.epochs {
		if e.noticed == server {
			first = first && e.open == ""
			e.open = server
		}
	}
	f.others = nil
	f.mu.Unlock()
	if !first {
		f.l.breaker.grantsResumed()
		f.l.Log.Info("claiming again", "held_for", held.Round(time.Millisecond))
	}
}
