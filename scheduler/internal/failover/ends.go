package failover

import (
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger/settle"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// recentFor and recentMax bound the ends of runs that a node asserts to a new server. A replica
	// is rarely further behind, and a server takes as many in a moment.
	recentFor     = time.Minute
	recentMax     = 4096
	recentPayload = 1 << 10 // bytes
)

// Ends are the reports of this node's runs that were recorded lately, oldest first.
type Ends struct {
	mu    sync.Mutex
	ended []*Ending
}

// Ending is a run that has ended here.
type Ending struct {
	Grant  work.Grant
	Report settle.Report
	At     time.Time // when the report was recorded
}

// add adds ends, which belong to Ends from then on, and drops old ones.
func (m *Ends) add(ends []*Ending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, e := range ends {
		e.Report.Output = nil // outputs of a minute are too large to keep, and so are large payloads that no attempt needs
		if len(e.Grant.Lease.Payload) > recentPayload && !e.Report.Rerun {
			e.Grant.Lease.Payload = nil
		}
		e.At = now
		m.ended = append(m.ended, e)
	}
	m.trim(now)
}

// trim drops ends that are old, or too many. The caller holds the lock.
func (m *Ends) trim(now time.Time) {
	old := max(0, len(m.ended)-recentMax)
	for old < len(m.ended) && now.Sub(m.ended[old].At) > recentFor {
		old++
	}
	clear(m.ended[:old])
	m.ended = m.ended[old:]
}

// list returns the ends that are remembered now.
func (m *Ends) list() []*Ending {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.trim(time.Now())
	return slices.Clone(m.ended)
}
