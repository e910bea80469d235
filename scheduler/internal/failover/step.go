package failover

import (
	"context"
	"errors"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// Step takes the next step in the current epochs, and returns when to check again. One goroutine calls it.
func (es *Epochs) Step(ctx context.Context) time.Duration {
	es.mu.Lock()
	noticed := es.every(known)
	open, placed := es.every(reached(Open)), es.every(reached(Waiting))
	over := time.Since(es.since) >= es.Hold
	last, may := es.allAsserted || over, es.allRestored && !es.isYoung() || over
	changes := es.changes
	es.mu.Unlock()
	switch {
	case open:
		return es.nextCheck()
	case !noticed:
		return AssertEvery
	case es.incarnate(ctx):
		wait.Signal(es.check)
		return AssertEvery
	}
	if !placed {
		placed = es.assert(ctx, changes, last)
	}
	ready := placed
	//guard:grants-wait P1 nothing is claimed from a Redis that may have lost grants before all nodes have reported theirs
	if !may {
		ready = false
	}
	if ready && es.fillGaps(ctx) {
		es.release(changes)
		return es.nextCheck()
	}
	wait.Signal(es.Beat) // the nodes learn how far each of them is
	return AssertEvery
}

// isYoung reports whether this node has never claimed here, and the server is so young that other nodes' reports may be missing. The caller
// holds the lock.
func (es *Epochs) isYoung() bool {
	//guard:young-waits P1 a node without known peers waits, on a server that may just have lost records
	if es.neverClaimed() && time.Now().Before(es.young) {
		return true
	}
	return false
}

// neverClaimed reports whether this node has claimed nothing from these partitions yet. The caller holds the lock.
func (es *Epochs) neverClaimed() bool {
	return es.every(func(e *Epoch) bool { return e.Was() == "" })
}

// incarnate has partitions made again that have lost their gate or incarnation, and reports whether the epochs change by that. An
// incarnation that was made by a node without known peers is superseded: such a node may be claiming already.
func (es *Epochs) incarnate(ctx context.Context) bool {
	lost, lone := false, make(map[int]string)
	es.mu.Lock()
	for part, e := range es.epochs {
		is, was := ledger.Incarnation(e.ID()), ledger.Incarnation(e.Was())
		lost = lost || is == ""
		//guard:lone-superseded P1 a node that came just after a loss, without known peers, claims nothing before the other nodes have reported their runs
		if _, after := ledger.MadeAfterLoss(is); is != "" && was != "" && is != was && !after {
			lone[part] = is
		}
	}
	es.mu.Unlock()
	var err error
	if lost {
		err = es.Restore(ctx, es.Parts())
	}
	for part, is := range lone {
		call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
		_, failed := es.Ledger.Supersede(call, part, is)
		err = errors.Join(err, failed)
		cancel()
	}
	if err != nil && !errors.Is(err, ledger.ErrClosed) && ctx.Err() == nil {
		es.calls.Fail("restore", err)
	}
	return lost || len(lone) > 0
}

// nextCheck is when a node that claims checks the master's id again: soon when the master did not
// give its id. All nodes must notice a new epoch within Hold of the first.
func (es *Epochs) nextCheck() time.Duration {
	if es.unidentified.Load() {
		return AssertEvery
	}
	return SampleEvery
}

// release lets the node claim again, unless another epoch has begun meanwhile.
func (es *Epochs) release(changes int) {
	es.mu.Lock()
	if es.changes != changes {
		es.mu.Unlock()
		return
	}
	first, held := true, time.Since(es.since)
	var lost []int
	for part, e := range es.epochs {
		first = first && e.Was() == ""
		if id := ledger.Incarnation(e.ID()); id != ledger.Incarnation(e.Was()) && es.Ledger.Made(part, id) {
			if _, after := ledger.MadeAfterLoss(id); after {
				lost = append(lost, part)
			}
		}
		e.Open()
	}
	es.mu.Unlock()
	es.recordLoss(lost)
	if !first {
		es.calls.GrantsResumed()
		es.Log.Info("claiming again", "held_for", held.Round(time.Millisecond))
	}
}
