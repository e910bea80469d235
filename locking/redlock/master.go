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

// maxCalls bounds the calls under way to one master, also those whose caller has returned. With more, a call
// fails at once.
const maxCalls = 512

// master is one of the independent servers.
type master struct {
	client redis.UniversalClient
	addr   string
	calls  atomic.Int64
	lost   atomic.Pointer[lostState] // nil: it votes, as far as is known
	repair atomic.Bool               // a repair is under way
}

func newMaster(c redis.UniversalClient) *master {
	return &master{client: c, addr: redisconn.Addr(c)}
}

// enter reports whether another call may be made; leave ends it.
func (m *master) enter() bool {
	if m.calls.Add(1) > maxCalls {
		m.calls.Add(-1)
		return false
	}
	return true
}

func (m *master) leave() { m.calls.Add(-1) }

var errBusy = errors.New("too many calls to this master have no answer; check whether it hangs")

// explain names the master in err.
func (m *master) explain(op string, err error) error {
	if errors.Is(err, errBusy) {
		return errors.Join(redisconn.Classify(op+" at redis "+m.addr, locking.ErrUnreachable), err)
	}
	return redisconn.Classify(op+" at redis "+m.addr, err)
}

// answer is the answer of one master, or the reason why there is none.
type answer[T any] struct {
	master int
	value  T
	err    error
}

// askAll calls f for every master at once, each in a goroutine of its own, and returns a channel with one
// answer from each; the caller may leave answers unread. f must end soon after its context does, MasterTimeout
// and extra from now; maxCalls bounds the goroutines of a client that does not. If turns is not nil, each call
// waits for its turn and ends it.
//
// The end of the caller's ctx does not end f, because go-redis closes the connection of a call that is
// cancelled, and MasterTimeout is short.
func askAll[T any](ctx context.Context, d *driver, extra time.Duration, turns []turn, f func(ctx context.Context, i int, m *master) (T, error)) <-chan answer[T] {
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
		d.calls.start(func() {
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

// gather passes answers to take until take has enough, all n have come, ctx ends or timeout has passed.
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

// repeat calls f until it succeeds, three times at most, each with MasterTimeout. after is called after each.
func (d *driver) repeat(ctx context.Context, after func(), f func(ctx context.Context) error) error {
	for try := 0; ; try++ {
		callCtx, cancel := context.WithTimeout(ctx, d.cfg.MasterTimeout)
		err := f(callCtx)
		cancel()
		after()
		if err == nil || errors.Is(err, redis.ErrClosed) || try == 2 || !pause(ctx, d.cfg.MasterTimeout) {
			return err
		}
	}
}

// repeatTime is how much longer than one call repeat takes at most.
func (d *driver) repeatTime() time.Duration { return 4 * d.cfg.MasterTimeout }

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
