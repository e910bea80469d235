package redlock

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
)

// mostCalls bounds the calls under way to one master, those included whose
// caller has gone. A master that has so many is passed over.
const mostCalls = 512

// master is one of the servers.
type master struct {
	client redis.UniversalClient
	addr   string
	calls  atomic.Int64
	sick   atomic.Pointer[sickness] // nil: as far as is known it votes
	repair atomic.Bool              // a repair is under way
}

func newMaster(c redis.UniversalClient) *master {
	return &master{client: c, addr: redisconn.Addr(c)}
}

// enter reports whether another call may be made; leave ends it.
func (m *master) enter() bool {
	if m.calls.Add(1) > mostCalls {
		m.calls.Add(-1)
		return false
	}
	return true
}

func (m *master) leave() { m.calls.Add(-1) }

var errBusy = errors.New("too many calls to this master are unanswered; is it hung?")

// explain names the master in err.
func (m *master) explain(op string, err error) error {
	if errors.Is(err, errBusy) {
		return errors.Join(redisconn.Classify(op+" at redis "+m.addr, locking.ErrUnreachable), err)
	}
	return redisconn.Classify(op+" at redis "+m.addr, err)
}

// answer is what one master said, or why it said nothing.
type answer[T any] struct {
	master int
	value  T
	err    error
}

// askAll calls f for every master at once, each in a goroutine that ends with
// f, and returns where their answers come: one from each, of which nobody has
// to take any. f must end soon after its context does, MasterTimeout and extra
// from now; the goroutines of a client that does not are bounded by mostCalls.
// turns, if there are any, are waited for and ended, one for each master.
//
// The end of the caller's ctx does not end f: a call that is broken off costs its
// connection, and MasterTimeout is short.
func askAll[T any](ctx context.Context, d *Driver, extra time.Duration, turns []turn, f func(ctx context.Context, i int, m *master) (T, error)) <-chan answer[T] {
	answers := make(chan answer[T], len(d.masters))
	for i, m := range d.masters {
		if !m.enter() {
			if turns != nil {
				turns[i].end()
			}
			answers <- answer[T]{master: i, err: m.explain("call", errBusy)}
			continue
		}
		callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.cfg.MasterTimeout+extra)
		d.calls.Go(func() {
			defer m.leave()
			defer cancel()
			if turns != nil {
				defer turns[i].end()
				if err := turns[i].wait(callCtx); err != nil {
					answers <- answer[T]{master: i, err: m.explain("call", err)}
					return
				}
			}
			v, err := f(callCtx, i, m)
			answers <- answer[T]{i, v, err}
		})
	}
	return answers
}

// gather takes answers until take says that it has enough, all n have come, ctx
// ends or the time is up. It waits for no goroutine.
func gather[T any](ctx context.Context, answers <-chan answer[T], n int, timeout time.Duration, take func(a answer[T]) (enough bool)) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for range n {
		select {
		case a := <-answers:
			if take(a) {
				return
			}
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// persist calls f, and again twice if it fails, each time with MasterTimeout:
// for what a master should hear though its caller does not wait for it. first is
// called after each.
// persistFor is how much longer than one call that lasts at most.
func (d *Driver) persist(ctx context.Context, first func(), f func(ctx context.Context) error) error {
	for try := 0; ; try++ {
		callCtx, cancel := context.WithTimeout(ctx, d.cfg.MasterTimeout)
		err := f(callCtx)
		cancel()
		first()
		if err == nil || errors.Is(err, redis.ErrClosed) || try == 2 || !pause(ctx, d.cfg.MasterTimeout) {
			return err
		}
	}
}

func (d *Driver) persistFor() time.Duration { return 4 * d.cfg.MasterTimeout }

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
