package lane

import (
	"slices"
	"sync"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/work"
)

const (
	// rememberFor and rememberMax bound which ends of runs a node tells again: a replica is rarely further behind, and a
	// server can be told of so many in a moment.
	rememberFor     = time.Minute
	rememberMax     = 4096
	rememberPayload = 1 << 10 // bytes
)

// memory is the ends of this node's runs that were recorded lately, oldest first.
type memory struct {
	mu    sync.Mutex
	ended []*ending
}

// ending is a run that has ended here.
type ending struct {
	Grant  work.Grant
	Report ledger.Report
	At     time.Time // when that was recorded
}

// add remembers ends, which are its own from then on, and forgets old ones.
func (m *memory) add(ends []*ending) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, e := range ends {
		e.Report.Output = nil // a minute of outputs is too much to keep, and of large payloads where no next attempt needs them
		if len(e.Grant.Lease.Payload) > rememberPayload && !e.Report.Rerun {
			e.Grant.Lease.Payload = nil
		}
		e.At = now
		m.ended = append(m.ended, e)
	}
	m.shed(now)
}

// shed forgets what is old, or too much. The caller has the lock.
func (m *memory) shed(now time.Time) {
	old := max(0, len(m.ended)-rememberMax)
	for old < len(m.ended) && now.Sub(m.ended[old].At) > rememberFor {
		old++
	}
	clear(m.ended[:old])
	m.ended = m.ended[old:]
}

// recent are the ends that are remembered now.
func (m *memory) recent() []*ending {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shed(time.Now())
	return slices.Clone(m.ended)
}
