package lane

import (
	"maps"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

const (
	// toldFor is for how long a node remembers that a follower was told: longer than an event waits for a follower that
	// nobody holds. One that waits for longer, because a follower's partition is full, is told again once in that time.
	toldFor = 2 * unheldAfter
	// toldMax is how many answers a node remembers, some 200 bytes each. What is beyond is told again in each sweep.
	toldMax = 1 << 15
)

// told is which followers have answered, of events that stay in the outbox because of others. Each node remembers for itself
// what was answered to it, so that an event which waits is not told again in each sweep. Only the sweep's goroutine touches it.
type told struct {
	server string                // that has answered: another one may have lost what it was told
	at     map[hearing]time.Time // when
	swept  time.Time             // when old answers were forgotten last
}

// hearing is one follower's word of one event.
type hearing struct{ event, job string }

// begin forgets all that another server has answered, and now and then what is old: its events have left the outbox.
func (t *told) begin(server string) {
	now := time.Now()
	if t.at == nil || t.server != server {
		t.server, t.at, t.swept = server, make(map[hearing]time.Time), now
	}
	if now.Sub(t.swept) >= toldFor/4 {
		t.swept = now
		maps.DeleteFunc(t.at, func(_ hearing, at time.Time) bool { return now.Sub(at) >= toldFor })
	}
}

// has says whether a follower has answered lately that it was told.
func (t *told) has(e ledger.Event, job string) bool {
	at, known := t.at[hearing{e.Record(), job}]
	return known && time.Since(at) < toldFor
}

// keep remembers who has answered. The names are copied: they are parts of the list of all followers.
func (t *told) keep(e ledger.Event, answered []string) {
	for _, job := range answered {
		if len(t.at) < toldMax {
			t.at[hearing{e.Record(), strings.Clone(job)}] = time.Now()
		}
	}
}

// forget forgets an event that has left the outbox.
func (t *told) forget(e ledger.Event) {
	for _, job := range e.Followers {
		delete(t.at, hearing{e.Record(), job})
	}
}
