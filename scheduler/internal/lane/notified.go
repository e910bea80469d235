package lane

import (
	"maps"
	"strings"
	"time"

	"github.com/escapement/escapement/scheduler/internal/ledger"
)

const (
	// answersFor is how long a node remembers a follower's answer: longer than an event waits for a
	// follower without a node. An event that waits longer, for a full partition, is sent again once
	// in that time.
	answersFor = 2 * unheldAfter
	// answersMax bounds the answers that a node remembers, some 200 bytes each. Further events are
	// sent again in each sweep.
	answersMax = 1 << 15
)

// notified remembers which followers have answered, for events that stay in the outbox because of
// other followers. So a waiting event is not sent again in each sweep. Each node remembers only its
// own answers. Only the relay uses it.
type notified struct {
	answers map[delivery]answer
	swept   time.Time // when old answers were last dropped
}

// delivery is one event for one follower, or one tick of the event, ms.
type delivery struct {
	event, job string
	tick       int64 // 0 for the whole event
}

// answer is the server that answered, and when. Another server may have lost the event's effect.
type answer struct {
	server string
	at     time.Time
}

// begin drops old answers now and then: their events have left the outbox.
func (t *notified) begin() {
	now := time.Now()
	if t.answers == nil {
		t.answers, t.swept = make(map[delivery]answer), now
	}
	if now.Sub(t.swept) >= answersFor/4 {
		t.swept = now
		maps.DeleteFunc(t.answers, func(_ delivery, a answer) bool { return now.Sub(a.at) >= answersFor })
	}
}

// has reports whether a follower's server has answered lately, to a tick of an event or, with 0, to the event.
func (t *notified) has(e ledger.Event, job string, tick int64, server string) bool {
	a, known := t.answers[delivery{e.Record(), job, tick}]
	return known && a.server == server && time.Since(a.at) < answersFor
}

// keep remembers that a server has answered, as for has. It copies the name, which is part of a longer text.
func (t *notified) keep(e ledger.Event, job string, tick int64, server string) {
	if len(t.answers) < answersMax {
		t.answers[delivery{e.Record(), strings.Clone(job), tick}] = answer{server, time.Now()}
	}
}

// forget drops the answers to an event that has left the outbox.
func (t *notified) forget(e ledger.Event) {
	if e.Count > 1 { // its ticks too
		maps.DeleteFunc(t.answers, func(d delivery, _ answer) bool { return d.event == e.Record() })
	}
	for _, job := range e.Followers {
		delete(t.answers, delivery{e.Record(), job, 0})
	}
}
