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
// what was answered to it, so that an event which waits is not told again in each sweep. Only the relay touches it.
type notified struct {
	answers map[hearing]answer
	swept   time.Time // when old answers were forgotten last
}

// hearing is one follower's word of one event.
type hearing struct{ event, job string }

// answer is which server has answered, and when. Another one may have lost what that was told.
type answer struct {
	server string
	at     time.Time
}

// begin forgets, now and then, what is old: its events have left the outbox.
func (t *notified) begin() {
	now := time.Now()
	if t.answers == nil {
		t.answers, t.swept = make(map[hearing]answer), now
	}
	if now.Sub(t.swept) >= toldFor/4 {
		t.swept = now
		maps.DeleteFunc(t.answers, func(_ hearing, a answer) bool { return now.Sub(a.at) >= toldFor })
	}
}

// has says whether a follower's server has answered lately that it was told.
func (t *notified) has(e ledger.Event, job, server string) bool {
	a, known := t.answers[hearing{e.Record(), job}]
	return known && a.server == server && time.Since(a.at) < toldFor
}

// keep remembers which servers have answered for which followers. The names are copied: they are parts of the list of all followers.
func (t *notified) keep(e ledger.Event, answered map[string]string) {
	for job, server := range answered {
		if len(t.answers) < toldMax {
			t.answers[hearing{e.Record(), strings.Clone(job)}] = answer{server, time.Now()}
		}
	}
}

// forget forgets an event that has left the outbox.
func (t *notified) forget(e ledger.Event) {
	for _, job := range e.Followers {
		delete(t.answers, hearing{e.Record(), job})
	}
}
