package runner

import (
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

// recentFor is the shortest time for which a grant of a pending run is remembered: much longer than
// an answer is under way.
const recentFor = time.Minute

// recentGrants are the pending runs that this node was granted lately: since turned, and in the
// period before.
type recentGrants struct {
	mu            sync.Mutex
	taken, before map[string]locking.Token
	turned        time.Time
}

// first reports whether the grant of a pending run arrives for the first time. A sweep from before
// the grant makes the agenda claim the run again; the ledger repeats the grant, which may arrive
// after the run has ended.
func (n *recentGrants) first(run string, token locking.Token) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); n.taken == nil || now.Sub(n.turned) > recentFor {
		n.before, n.taken, n.turned = n.taken, make(map[string]locking.Token), now
	}
	if n.taken[run] == token || n.before[run] == token {
		return false
	}
	n.taken[run] = token
	return true
}
