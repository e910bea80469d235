package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/escapement/escapement/locking"
)

// ErrFull is returned by a Memory that has as many fences as it may have.
var ErrFull = errors.New("no room for another fence")

const (
	// DefaultFences is how many fences a Memory keeps that was not told.
	DefaultFences = 100_000

	// MaxWaiting is how many may wait in a Memory's Enter at one fence with the
	// largest token. Those with smaller ones are refused and wait no more.
	MaxWaiting = 100
)

// Memory keeps the largest tokens in this process: for tests, and for a
// resource that lives in one process. It forgets all when the process ends, and
// until each fence has been claimed again, a late write gets through.
type Memory struct {
	most int

	mu     sync.Mutex
	fences map[string]*gate
}

// gate is one fence.
//
//	            Enter, token ≥ max                    leave
//	smaller, or nobody, inside ──► waits, max = token ──► inside, with its equals
//
// Whoever waits has raised max already, so no smaller token joins those inside.
type gate struct {
	max     locking.Token
	holder  locking.Token                      // of those inside
	inside  map[*visit]context.CancelCauseFunc // each its context's
	changed chan struct{}                      // closed when max has grown or the last one inside has left
	waiting int                                // in wait, those included that max has overtaken
	abreast int                                // of the waiting, those whose token is max; at most MaxWaiting
	used    time.Time
}

// visit is one effect that goes on.
type visit struct{ _ byte } // not empty, so that each has an address of its own

var _ Gate = (*Memory)(nil)

// NewMemory returns a Memory that keeps at most so many fences; 0 or less: 100,000.
// A further one is refused with an error that wraps ErrFull, because to forget
// an old one would let a late write through.
func NewMemory(most int) *Memory {
	if most <= 0 {
		most = DefaultFences
	}
	return &Memory{most: most, fences: make(map[string]*gate)}
}

// Check is described at Store. It does not wait for those inside: use Enter for
// an effect of some length.
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

// Enter is described at Gate.
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
	v := new(visit)
	g.holder, g.inside[v] = token, cancel
	return inside, func() { m.leave(g, v) }, nil
}

// Forget drops the fences that nobody has shown a token for since before, and
// says how many. A late write older than that gets through afterwards.
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
	if len(m.fences) >= m.most {
		return nil, fmt.Errorf("fence %q: %w: the memory has %d, its limit; call Forget now and then, or keep them in SQL", name, ErrFull, m.most)
	}
	g = &gate{inside: make(map[*visit]context.CancelCauseFunc), changed: make(chan struct{})}
	m.fences[name] = g
	return g, nil
}

// wait claims the fence and returns when only equal tokens are inside; m.mu is
// held, except while it waits.
func (m *Memory) wait(ctx context.Context, g *gate, fence string, token locking.Token) error {
	if err := g.claim(fence, token); err != nil {
		return err
	}
	if g.open(token) {
		return nil
	}
	if g.abreast == MaxWaiting {
		return fmt.Errorf("fence %q: %w: %d, the limit, with token %d; ask again with it when %d has left", fence, ErrBusy, MaxWaiting, token, g.holder)
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

func (m *Memory) leave(g *gate, v *visit) {
	m.mu.Lock()
	defer m.mu.Unlock()
	cancel, ok := g.inside[v]
	if !ok {
		return // left before
	}
	cancel(nil)
	delete(g.inside, v)
	if len(g.inside) == 0 {
		g.wake()
	}
}

// claim applies the rule and remembers the token; Memory.mu is held.
func (g *gate) claim(fence string, token locking.Token) error {
	g.used = time.Now()
	//guard:fence-http P5 a request whose token is smaller than one that was seen is refused
	if err := judge(fence, token, g.max); err != nil {
		return err
	}
	if token == g.max {
		return nil
	}
	g.max, g.abreast = token, 0
	for _, cancel := range g.inside {
		cancel(&StaleError{Fence: fence, Token: g.holder, Max: token})
	}
	g.wake()
	return nil
}

// open reports whether a token that was claimed may go inside.
func (g *gate) open(token locking.Token) bool { return len(g.inside) == 0 || g.holder == token }

// queue counts one more, or one less, that waits. Whoever was overtaken is not
// abreast any more.
func (g *gate) queue(n int, token locking.Token) {
	g.waiting += n
	if token == g.max {
		g.abreast += n
	}
}

func (g *gate) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}
