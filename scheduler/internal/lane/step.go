package lane

import (
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// step takes the next step in the current epochs, and returns when to check again. Only the lane's watch calls it.
func (f *epochs) step(ctx context.Context) time.Duration {
	f.mu.Lock()
	known := f.every(func(e *failover.Epoch) bool { return e.ID() != "" })
	open := f.every(func(e *failover.Epoch) bool { return e.State() == failover.Open })
	placed := f.every(func(e *failover.Epoch) bool { return e.State() >= failover.Waiting })
	over := time.Since(f.since) >= f.l.FailoverHold
	last, may := f.allAsserted || over, f.allRestored && !f.isYoung() || over
	changes := f.changes
	f.mu.Unlock()
	switch {
	case open:
		return f.nextCheck()
	case !known:
		return assertEvery
	case f.incarnate(ctx):
		wait.Signal(f.check)
		return assertEvery
	}
	if !placed {
		placed = f.assert(ctx, changes, last)
	}
	ready := placed
	//guard:grants-wait P1 a Redis that may have lost grants is asked for none before all nodes have reported theirs
	if !may {
		ready = false
	}
	if ready && f.level(ctx) {
		f.release(changes)
		return f.nextCheck()
	}
	wait.Signal(f.l.Beat) // others learn it, and this node learns of them
	return assertEvery
}

// isYoung reports whether this node has never claimed here and does not know for how long others have. The caller holds the lock.
func (f *epochs) isYoung() bool {
	//guard:young-waits P1 a node that knows nobody waits, on a server that may just have lost what others know
	if f.neverClaimed() && time.Now().Before(f.young) {
		return true
	}
	return false
}

// neverClaimed reports whether this node has claimed nothing from the lane's partitions yet. The caller holds the lock.
func (f *epochs) neverClaimed() bool {
	return f.every(func(e *failover.Epoch) bool { return e.Was() == "" })
}

// joins reports whether this node has claimed nothing yet.
func (f *epochs) joins() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.neverClaimed()
}

// incarnate has partitions made again that have lost their gate or incarnation, and reports whether the epochs change by that. An
// incarnation that was made by a node which knew no other gets another one: such a node may be claiming already.
func (f *epochs) incarnate(ctx context.Context) bool {
	lost, lone := false, make(map[int]string)
	f.mu.Lock()
	for part, e := range f.epochs {
		is, was := ledger.Incarnation(e.ID()), ledger.Incarnation(e.Was())
		lost = lost || is == ""
		//guard:lone-superseded P1 a node that came just after a loss and knows nobody claims nothing before the others have reported their runs
		if _, after := ledger.MadeAfterLoss(is); is != "" && was != "" && is != was && !after {
			lone[part] = is
		}
	}
	f.mu.Unlock()
	var err error
	if lost {
		err = f.l.Restore(ctx, f.parts())
	}
	for part, is := range lone {
		call, cancel := context.WithTimeout(ctx, CallTimeout)
		_, failed := f.l.Ledger.Supersede(call, part, is)
		err = errors.Join(err, failed)
		cancel()
	}
	if err != nil && !errors.Is(err, ledger.ErrClosed) && ctx.Err() == nil {
		f.l.fail("restore", err)
	}
	return lost || len(lone) > 0
}

// nextCheck is when a node that claims checks the master's id again: soon when the master did not
// give it. All nodes must notice a new epoch within FailoverHold of the first.
func (f *epochs) nextCheck() time.Duration {
	if f.unidentified.Load() {
		return assertEvery
	}
	return sampleEvery
}

// release lets the node claim again, unless another epoch has begun meanwhile.
func (f *epochs) release(changes int) {
	f.mu.Lock()
	if f.changes != changes {
		f.mu.Unlock()
		return
	}
	first, held := true, time.Since(f.since)
	var lost []int
	for part, e := range f.epochs {
		first = first && e.Was() == ""
		if id := ledger.Incarnation(e.ID()); id != ledger.Incarnation(e.Was()) && f.l.Ledger.Made(part, id) {
			if _, after := ledger.MadeAfterLoss(id); after {
				lost = append(lost, part)
			}
		}
		e.Open()
	}
	f.mu.Unlock()
	f.tellLost(lost)
	if !first {
		f.l.breaker.grantsResumed()
		f.l.Log.Info("claiming again", "held_for", held.Round(time.Millisecond))
	}
}
