package notify

import (
	"time"

	"slices"

	"github.com/google/uuid"

	"github.com/escapement/escapement/scheduler/ops"
)

const (
	// waitMost bounds the events that wait for a target; of further ones only the number is kept.
	waitMost = 50
	// sendFor is how long a message is tried, ms, and queueFor how long a target without a notifier
	// is remembered.
	sendFor  = 6 * 60 * 60 * 1000
	queueFor = 7 * 24 * 60 * 60 * 1000
	hour     = 60 * 60 * 1000
)

// queue has the waiting events of one target, as stored.
type queue struct {
	Wait  []Event  `json:"wait,omitempty"`
	More  int      `json:"more,omitempty"`  // events that are not kept
	First int64    `json:"first,omitempty"` // when the first waiting event came, ms
	Held  bool     `json:"held,omitempty"`  // they wait for the limit
	Send  *Message `json:"send,omitempty"`  // the message that is sent, or will be
	Until int64    `json:"until,omitempty"` // when that is given up, ms
	Sent  []int64  `json:"sent,omitempty"`  // when the messages of the last hour were made, ms
	Used  int64    `json:"used"`            // when it was changed last, ms
}

func readQueue(text string) (q queue, err error) {
	err = ops.Decode([]byte(text), &q)
	return q, err
}

func (q *queue) text() string {
	text, _ := ops.Encode(q) // texts and numbers
	return string(text)
}

// add has an event wait.
func (q *queue) add(e Event, now int64) {
	if q.First == 0 {
		q.First = now
	}
	if q.Used = now; len(q.Wait) < waitMost {
		q.Wait = append(q.Wait, e)
	} else {
		q.More++
	}
}

// seal makes a message of events that have waited long enough, unless another message is being sent
// or the target has had as many as it may. It reports whether the queue has changed.
func (q *queue) seal(namespace string, each bool, groupFor int64, atMost int, now int64) bool {
	if q.Send != nil || q.First == 0 || now < q.First+groupFor {
		return false
	}
	q.Sent = slices.DeleteFunc(q.Sent, func(at int64) bool { return at <= now-hour })
	if len(q.Sent) >= atMost {
		changed := !q.Held
		q.Held = true
		return changed
	}
	n := len(q.Wait)
	if each {
		n = min(n, 1)
	}
	m := Message{ID: uuid.NewString(), Namespace: namespace, Events: slices.Clone(q.Wait[:n]), HeldBack: q.Held}
	if q.Wait = slices.Delete(q.Wait, 0, n); len(q.Wait) == 0 {
		m.More, q.More, q.First, q.Held = q.More, 0, 0, false
	}
	m.Text = m.text()
	q.Send, q.Until, q.Sent, q.Used = &m, now+sendFor, append(q.Sent, now), now
	return true
}

// stampOf is an instant, ms; the zero time for 0.
func stampOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return instant(ms)
}
