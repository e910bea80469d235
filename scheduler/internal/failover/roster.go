package failover

import (
	"maps"
	"slices"

	"github.com/escapement/escapement/scheduler/internal/ledger/epoch"
	"github.com/escapement/escapement/scheduler/internal/roster"
	"github.com/escapement/escapement/sharding"
)

// Servers are the texts that this node reports in the roster: of the epochs in which its runs were reported, and of those in which
// they are in place.
func (es *Epochs) Servers() (asserted, restored string) {
	es.mu.Lock()
	defer es.mu.Unlock()
	if !es.every(reached(Restoring)) {
		return epoch.Nobody, ""
	}
	if asserted = es.fingerprint(); es.every(reached(Waiting)) {
		restored = asserted
	}
	return asserted, restored
}

// fingerprint is the roster's text for these epochs. The caller holds the lock.
func (es *Epochs) fingerprint() string {
	return epoch.Fingerprint(es.Ledger, slices.Sorted(maps.Keys(es.epochs)), func(part int) string { return es.epochs[part].ID() })
}

// Seen notes what the roster shows of these epochs, for all other nodes of the view. A node that reports nothing has a version that does
// not.
func (es *Epochs) Seen(members []roster.Member, nodes []sharding.Node) {
	es.mu.Lock()
	defer es.mu.Unlock()
	es.allAsserted = es.every(known)
	es.allRestored = es.allAsserted
	here := es.fingerprint()
	for _, x := range nodes {
		if x.ID == es.ID {
			continue
		}
		i := slices.IndexFunc(members, func(m roster.Member) bool { return m.ID == x.ID })
		reportsNothing := i >= 0 && members[i].Asserted == ""
		es.allAsserted = es.allAsserted && (reportsNothing || i >= 0 && epoch.HasFingerprint(members[i].Asserted, here))
		es.allRestored = es.allRestored && (reportsNothing || i >= 0 && epoch.HasFingerprint(members[i].Restored, here))
	}
}
