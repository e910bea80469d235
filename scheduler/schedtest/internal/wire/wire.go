// Package wire delivers the messages of a simulated cluster one after another, each after a time that
// the simulation's seed decides, and reads the protocol of Redis in them.
package wire

import (
	"container/heap"
	"sync"
	"time"
)

// Wire carries everything that passes between the processes of a simulation: requests and replies
// of Redis, lines for the sink, and the plan's timed acts. One goroutine delivers one thing after
// another, each at an instant of its own, so that the effects of a delivery have come to rest
// before the next. For that reason a seed gives the same history on every machine.
type Wire struct {
	mu    sync.Mutex
	queue deliveries
	last  time.Time     // of the latest delivery
	wake  chan struct{} // holds one signal: the queue has a new head
	stop  chan struct{} // closed to end Run
	ended chan struct{} // closed by Run
}

// delivery is an event at an instant.
type delivery struct {
	at   time.Time
	from int    // number of the process it comes from, then
	sum  uint64 // a digest of its content: orders deliveries of the same instant
	do   func()
}

// New returns a wire, for which Run is to be called.
func New() *Wire {
	return &Wire{wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
}

// Post has do called at an instant, by the goroutine of Run. from is the number of the process that
// sends it, and sum a digest of its content: they order the deliveries of one instant.
func (w *Wire) Post(at time.Time, from int, sum uint64, do func()) {
	d := &delivery{at: at, from: from, sum: sum, do: do}
	w.mu.Lock()
	heap.Push(&w.queue, d)
	first := w.queue[0] == d
	w.mu.Unlock()
	if first {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// Run delivers until Close; messages under way then are lost.
func (w *Wire) Run() {
	defer close(w.ended)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		d, wait := w.next()
		if d != nil {
			d.do()
			continue
		}
		timer.Reset(wait)
		select {
		case <-w.stop:
			return
		case <-w.wake:
		case <-timer.C:
		}
	}
}

// Close ends Run, and returns when it has ended.
func (w *Wire) Close() {
	close(w.stop)
	<-w.ended
}

// next takes the delivery that is due, or returns how long to wait for the next.
func (w *Wire) next() (*delivery, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, time.Hour
	}
	now := time.Now()
	head := w.queue[0]
	if !now.After(w.last) { // the latest delivery was at this very instant
		return nil, max(time.Nanosecond, head.at.Sub(now))
	}
	if wait := head.at.Sub(now); wait > 0 {
		return nil, wait
	}
	w.last = now
	d, _ := heap.Pop(&w.queue).(*delivery)
	return d, 0
}

// deliveries is a heap by instant.
type deliveries []*delivery

func (q deliveries) Len() int { return len(q) }
func (q deliveries) Less(i, j int) bool {
	a, b := q[i], q[j]
	if !a.at.Equal(b.at) {
		return a.at.Before(b.at)
	}
	if a.from != b.from {
		return a.from < b.from
	}
	return a.sum < b.sum
}
func (q deliveries) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is for container/heap.
func (q *deliveries) Push(x any) {
	d, _ := x.(*delivery)
	*q = append(*q, d)
}

// Pop is for container/heap.
func (q *deliveries) Pop() any {
	old := *q
	d := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return d
}
