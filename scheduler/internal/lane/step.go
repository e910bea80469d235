package lane

import (
	"context"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// step does what there is to do about the id that the master has now, and says when to look again. Only the lane's watch calls it.
func (f *failover) step(ctx context.Context) time.Duration {
	f.mu.Lock()
	server := f.id
	if server == ledger.Nobody {
		f.mu.Unlock()
		return assertEvery
	}
	f.notice(server)
	open := f.every(func(e *epoch) bool { return e.open == server })
	placed := f.every(func(e *epoch) bool { return e.placed == server })
	over := time.Since(f.since) >= f.l.FailoverHold
	last, may := f.allTold || over, f.allPlaced || over
	f.mu.Unlock()
	if open {
		return f.nextLook()
	}
	if !placed {
		placed = f.assert(ctx, server, last)
	}
	ready := placed
	//guard:grants-wait P1 a Redis that may have lost grants is asked for none before all nodes have told it theirs
	if !may {
		ready = false
	}
	if ready && f.level(ctx, server) {
		f.release(server)
		return f.nextLook()
	}
	wait.Signal(f.l.Beat) // to say so, and to hear whether the others have
	return assertEvery
}

// notice takes up that partitions have another master than before. The caller has the lock.
func (f *failover) notice(server string) {
	fresh := false
	for _, e := range f.epochs {
		if e.noticed == server {
			continue
		}
		fresh = true
		e.noticed, e.placed = server, ""
		if e.told == server { // it has come back, and has not heard of what was granted meanwhile
			e.told = ledger.Nobody
		}
		//guard:back-is-new P1 a server that has come back is asked for nothing before it was told
		if e.open == server {
			e.open = ledger.Nobody
		}
	}
	if fresh {
		for _, e := range f.epochs { // what is left to be told again is forgotten below, so these are told anew
			if e.told == server && e.placed != server {
				e.told = ledger.Nobody
			}
		}
		f.since, f.allTold, f.allPlaced = time.Now(), false, false
		f.others, f.left, f.leftOf, f.behind = f.l.Nodes.Living(), nil, "", nil
		f.l.lanes.lose()
	}
}

// nextLook is when a node that claims looks at the master again: soon, where it has not seen all of it. All nodes are to know
// within FailoverHold of the first who has taken the place of a master.
func (f *failover) nextLook() time.Duration {
	if f.partly.Load() {
		return assertEvery
	}
	return sampleEvery
}

// release lets the node claim again of all of the lane's partitions that have noticed the master.
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
		f.l.breaker.asks()
		f.l.Log.Info("claiming again", "held_for", held.Round(time.Millisecond))
	}
}
