package schedtest

import (
	"container/heap"
	"sync"
	"time"
)

// wire carries everything that passes between the processes of a simulation: requests and replies
// of Redis, lines for the sink, and the plan's timed acts. One goroutine delivers one thing after
// another, each at an instant of its own, so that the effects of a delivery have come to rest
// before the next. For that reason a seed gives the same history on every machine.
type wire struct {
	mu    sync.Mutex
	queue deliveries
	last  time.Time     // of the latest delivery
	wake  chan struct{} // holds one signal: the queue has a new head
	stop  chan struct{} // closed to end run
	ended chan struct{} // closed by run
}

// delivery is an event at an instant.
type delivery struct {
	at   time.Time
	from int    // number of the process it comes from, then
	sum  uint64 // a digest of its content: orders deliveries of the same instant
	do   func()
}

func newWire() *wire {
	return &wire{wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
}

// post has do called at an instant, by the goroutine of run.
func (w *wire) post(at time.Time, from int, sum uint64, do func()) {
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

// run delivers until stop is closed; messages under way then are lost.
func (w *wire) run() {
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

// next takes the delivery that is due, or returns how long to wait for the next.
func (w *wire) next() (*delivery, time.Duration) {
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
