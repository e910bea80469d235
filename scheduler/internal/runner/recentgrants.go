package runner

import (
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

// takenFor is how long a grant of a pending run is known again, at least: much longer than a reply is under way.
const takenFor = time.Minute

// news are the pending runs that this node was granted lately: since turned, and in the time before.
type recentGrants struct {
	mu            sync.Mutex
	taken, before map[string]locking.Token
	turned        time.Time
}

// first says whether the grant of a pending run is heard of for the first time. A sweep that looked before
// the grant has the agenda ask once more, and the same node is given the same grant, which it may hear of when
// the run has ended.
func (n *recentGrants) first(run string, token locking.Token) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); n.taken == nil || now.Sub(n.turned) > takenFor {
		n.before, n.taken, n.turned = n.taken, make(map[string]locking.Token), now
	}
	if n.taken[run] == token || n.before[run] == token {
		return false
	}
	n.taken[run] = token
	return true
}
