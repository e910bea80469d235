package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// master is one of the independent servers.
type master struct {
	client redis.UniversalClient
	addr   string
	index  int         // among the masters
	lost   atomic.Bool // it did not vote at the last acquisition
}

// question is a call to several masters at once.
type question[T any] struct {
	op      string
	masters []*master // nil: all
	timeout time.Duration
	call    func(ctx context.Context, m *master) (T, error)
	take    func(a answer[T]) (enough bool)
	then    func(a answer[T]) // called behind call, in its goroutine; may be nil
}

// answer is the answer of one master, or the reason why there is none.
type answer[T any] struct {
	master *master
	value  T
	err    error // names the master
}

// ask calls call for each master, each in a goroutine of its own, and passes the answers to take
// until take returns true. For a master without an answer within timeout, or before ctx ends, take
// gets an error.
//
// The end of the caller's ctx does not end a call, because go-redis closes the connection of a
// cancelled call, and timeout is short. Calls that go on after ask has returned end by their
// timeouts.
func ask[T any](ctx context.Context, d *driver, q question[T]) {
	if q.masters == nil {
		q.masters = d.masters
	}
	answers := make(chan answer[T], len(q.masters))
	explain := func(m *master, err error) error { return redisconn.Classify(q.op+" at redis "+m.addr, err) }
	for _, m := range q.masters {
		callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.timeout)
		d.start(func() {
			value, err := q.call(callCtx, m)
			cancel()
			a := answer[T]{m, value, explain(m, err)}
			answers <- a
			if q.then != nil {
				q.then(a)
			}
		})
	}
	timer := time.NewTimer(q.timeout)
	defer timer.Stop()
	waiting, late := slices.Clone(q.masters), error(nil)
	for len(waiting) > 0 && late == nil {
		select {
		case a := <-answers:
			waiting = slices.DeleteFunc(waiting, func(m *master) bool { return m == a.master })
			if q.take(a) {
				return
			}
		case <-timer.C:
			late = fmt.Errorf("%w: no answer within %s", locking.ErrUnreachable, q.timeout)
		case <-ctx.Done():
			late = fmt.Errorf("%w: %w", locking.ErrUnreachable, context.Cause(ctx))
		}
	}
	for _, m := range waiting {
		q.take(answer[T]{master: m, err: explain(m, late)})
	}
}

// reason returns why masters gave no answer.
func reason(errs []error) error {
	if len(errs) == 0 {
		return errors.New("the masters do not agree")
	}
	return errors.Join(errs...)
}

// start runs f in a goroutine that Wait waits for.
func (d *driver) start(f func()) {
	d.mu.Lock()
	d.running++
	d.mu.Unlock()
	go func() {
		f()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.running--; d.running == 0 {
			d.idle.Broadcast()
		}
	}()
}

// Wait waits for the calls that go on after their caller has returned: some MasterTimeouts at most. New calls
// may begin meanwhile.
func (d *driver) Wait() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.running > 0 {
		d.idle.Wait()
	}
}
