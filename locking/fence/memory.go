package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

// ErrFull is returned by a Memory that has reached its limit of fences.
var ErrFull = errors.New("no room for another fence")

const (
	// defaultFences is the limit of a Memory without one.
	defaultFences = 100_000

	// maxWaiting bounds the Enter calls that wait at one fence with the largest token.
	maxWaiting = 100
)

// Memory is a Gate in this process: for tests, and for a resource that one process serves. It loses its tokens when
// the process ends, and then accepts a late write until each fence was claimed again.
type Memory struct {
	limit int

	mu     sync.Mutex
	fences map[string]*gate
}

// gate is one fence.
//
//	            Enter, token ≥ max                    leave
//	smaller tokens inside, or none ──► waits, max = token ──► inside, with equal tokens
//
// A waiting call has raised max already, so no smaller token enters.
type gate struct {
	max     locking.Token
	holder  locking.Token                      // the token of the calls inside
	inside  map[*entry]context.CancelCauseFunc // with the cancel function of its context
	changed chan struct{}                      // closed when max has grown or the last one inside has left
	waiting int                                // calls in wait
	current int                                // the waiting calls whose token is max; at most maxWaiting
	used    time.Time
}

// entry is one effect between Enter and leave.
type entry struct{ _ byte } // not empty, so that each has an address of its own

var _ Gate = (*Memory)(nil)

// NewMemory returns a Memory with at most limit fences; 0 or less: 100,000. One more is refused with an error that
// wraps ErrFull, because to delete an old one could admit a late write.
func NewMemory(limit int) *Memory {
	if limit <= 0 {
		limit = defaultFences
	}
	return &Memory{limit: limit, fences: make(map[string]*gate)}
}

// Check implements Store. It does not wait for effects inside; use Enter for an effect that takes time.
func (m *Memory) Check(_ context.Context, fence string, token locking.Token) error {
	if err := Valid(fence, token); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g, err := m.gate(fence)
	if err != nil {
		return err
	}
	return g.claim(fence, token)
}

// Enter implements Gate.
func (m *Memory) Enter(ctx context.Context, fence string, token locking.Token) (context.Context, func(), error) {
	if err := Valid(fence, token); err != nil {
		return nil, nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	g, err := m.gate(fence)
	if err != nil {
		return nil, nil, err
	}
	if err := m.wait(ctx, g, fence, token); err != nil {
		return nil, nil, err
	}
	inside, cancel := context.WithCancelCause(ctx)
	v := new(entry)
	g.holder, g.inside[v] = token, cancel
	return inside, func() { m.leave(g, v) }, nil
}

// Forget deletes the fences without a token since before, and returns how many. A write after that
// is accepted with any token.
func (m *Memory) Forget(before time.Time) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := len(m.fences)
	for name, g := range m.fences {
		if g.used.Before(before) && len(g.inside) == 0 && g.waiting == 0 {
			delete(m.fences, name)
		}
	}
	return n - len(m.fences)
}

// gate returns the fence called name; m.mu is held.
func (m *Memory) gate(name string) (*gate, error) {
	g, ok := m.fences[name]
	if ok {
		return g, nil
	}
	if len(m.fences) >= m.limit {
		return nil, fmt.Errorf("fence %q: %w: the limit is %d; call Forget now and then, or keep fences in SQL", name, ErrFull, m.limit)
	}
	g = &gate{inside: make(map[*entry]context.CancelCauseFunc), changed: make(chan struct{})}
	m.fences[name] = g
	return g, nil
}

// wait claims the fence, and returns when only equal tokens are inside. m.mu is held, except during the wait.
func (m *Memory) wait(ctx context.Context, g *gate, fence string, token locking.Token) error {
	if err := g.claim(fence, token); err != nil {
		return err
	}
	if g.open(token) {
		return nil
	}
	if g.current == maxWaiting {
		return fmt.Errorf("fence %q: %w: %d, the limit, with token %d; try again with it when token %d has left", fence, ErrBusy, maxWaiting, token, g.holder)
	}
	g.queue(1, token)
	defer g.queue(-1, token)
	for !g.open(token) {
		changed := g.changed
		m.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-changed:
		}
		m.mu.Lock()
		if ctx.Err() != nil {
			return fmt.Errorf("fence %q: gave up: token %d is still inside: %w", fence, g.holder, context.Cause(ctx))
		}
		if err := g.claim(fence, token); err != nil {
			return err
		}
	}
	return nil
}

func (m *Memory) leave(g *gate, v *entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	cancel, ok := g.inside[v]
	if !ok {
		return // called before
	}
	cancel(nil)
	delete(g.inside, v)
	if len(g.inside) == 0 {
		g.wake()
	}
}

// claim applies the rule and stores the token; Memory.mu is held.
func (g *gate) claim(fence string, token locking.Token) error {
	g.used = time.Now()
	//guard:fence-http P5 a request whose token is smaller than one that was seen is refused
	if err := compare(fence, token, g.max); err != nil {
		return err
	}
	if token == g.max {
		return nil
	}
	g.max, g.current = token, 0
	for _, cancel := range g.inside {
		cancel(&StaleError{Fence: fence, Token: g.holder, Max: token})
	}
	g.wake()
	return nil
}

// open reports whether a token that was claimed may enter.
func (g *gate) open(token locking.Token) bool { return len(g.inside) == 0 || g.holder == token }

// queue adds n to the waiting calls, and to the current ones if token is still the largest.
func (g *gate) queue(n int, token locking.Token) {
	g.waiting += n
	if token == g.max {
		g.current += n
	}
}

func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}
