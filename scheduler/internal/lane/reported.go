package lane

import (
	"maps"
	"slices"

	"github.com/escapement/escapement/scheduler/internal/failover"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/sharding"
)

// servers are the texts that this node reports in the roster: of the epochs in which its runs were reported, and of those in which
// they are in place.
func (f *epochs) servers() (asserted, restored string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	reached := func(least failover.State) bool {
		return f.every(func(e *failover.Epoch) bool { return e.State() >= least })
	}
	if !reached(failover.Restoring) {
		return ledger.Nobody, ""
	}
	if asserted = f.fingerprint(); reached(failover.Waiting) {
		restored = asserted
	}
	return asserted, restored
}

// fingerprint is the roster's text for the lane's epochs. The caller holds the lock.
func (f *epochs) fingerprint() string {
	return f.l.Ledger.Fingerprint(slices.Sorted(maps.Keys(f.epochs)), func(part int) string { return f.epochs[part].ID() })
}

// seen notes what the roster says of these epochs, for all other nodes of the view. A node that reports nothing has a version that does
// not.
func (f *epochs) seen(members []roster.Member, nodes []sharding.Node) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.allAsserted = f.every(func(e *failover.Epoch) bool { return e.ID() != "" })
	f.allRestored = f.allAsserted
	here := f.fingerprint()
	for _, x := range nodes {
		if x.ID == f.l.ID {
			continue
		}
		i := slices.IndexFunc(members, func(m roster.Member) bool { return m.ID == x.ID })
		mute := i >= 0 && members[i].Asserted == ""
		f.allAsserted = f.allAsserted && (mute || i >= 0 && ledger.HasFingerprint(members[i].Asserted, here))
		f.allRestored = f.allRestored && (mute || i >= 0 && ledger.HasFingerprint(members[i].Restored, here))
	}
}

// Changes counts the changes of epochs that this node has noticed. What Redis no longer has after
// another change may have been lost, and not removed by somebody.
func (n *Lanes) Changes() (sum int) {
	for _, l := range n.all() {
		l.epochs.mu.Lock()
		sum += l.epochs.changes
		l.epochs.mu.Unlock()
	}
	return sum
}
