package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/ledger"
)

// ErrMoved is returned by Run when the namespace has moved to the Redis of Config.Next and is open there. Make another
// node with New on that client and run it.
var ErrMoved = errors.New("the namespace has moved to another Redis, where it is open; start a node there")

// movesEvery is how often a node looks how a move stands.
const movesEvery = time.Second

// relocation is what a node knows of a move of its namespace to another Redis, or from one to here.
//
//	open ── a script is answered closed, or the control record says so ──► closed ── open at Next, by the same move ──► moved
//	  ▲                                                                      │
//	  └────────── the move was undone, or is done and this is where to ──────┘
//
// Closed, the node claims nothing, is not ready, and looks every second. Moved, Run ends. What decides is the gate of each
// partition, which every script looks at; the control record says why, and when to ask again.
type relocation struct {
	n     *Node
	news  chan struct{} // holds one signal: a script was answered closed
	moved atomic.Bool

	mu     sync.Mutex
	closed error  // why nothing is claimed; nil while the namespace is open as far as is known
	said   string // which step of a move was logged to have closed the namespace; "" when it was logged that none does any more
	deaf   error  // why it is not known how things stand at Next
}

func newRelocation(n *Node) *relocation { return &relocation{n: n, news: make(chan struct{}, 1)} }

// shut is told that a script was answered closed. It does not block.
func (r *relocation) shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed == nil {
		r.closed = ledger.ErrClosed // more after the next look
		signal(r.news)
	}
}

// expelled stands before the registrar's: it hears of claims that were answered closed.
func (r *relocation) expelled(j *job, why string) {
	if why == sealed {
		r.shut()
	}
	r.n.registrar.expelled(j, why)
}

// trouble is why the node is not ready, nil when no move has closed the namespace.
func (r *relocation) trouble() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil && r.deaf != nil {
		return fmt.Errorf("%w; next: %w", r.closed, r.deaf)
	}
	return r.closed
}

// gone is what Run returns when the namespace has moved.
func (r *relocation) gone() error {
	return fmt.Errorf("scheduler: node %s: %w", r.n.cfg.Name, ErrMoved)
}

// run looks until ctx ends: every second while there is something to see. When the namespace has moved it calls depart
// and returns.
func (r *relocation) run(ctx context.Context, depart func()) {
	for ctx.Err() == nil {
		if r.calm() {
			select {
			case <-ctx.Done():
				return
			case <-r.news:
			}
		}
		if r.look(ctx) {
			r.moved.Store(true)
			r.n.log.Info("the namespace has moved, and is open there: this node ends here", "to", redisconn.Addr(r.n.cfg.Next))
			depart()
			return
		}
		pause(ctx, movesEvery)
	}
}

// calm says whether there is nothing to look at: nowhere to go, and nothing closed.
func (r *relocation) calm() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n.cfg.Next == nil && r.closed == nil
}

// look sees how things stand, says so once, and says whether the namespace has moved to Next.
func (r *relocation) look(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	own, err := r.n.ledger.Control(ctx)
	if err != nil {
		return false // other roles say so
	}
	m, err := ledger.ParseMove(own.Move)
	if err == nil && !closes(m) {
		r.reopen()
		return false
	}
	r.close(m, err)
	if m.Role != ledger.MoveFrom || r.n.cfg.Next == nil {
		return false
	}
	there, err := controlAt(ctx, r.n.cfg.Next, r.n.cfg.Namespace)
	r.hear(err)
	return err == nil && ledger.HasMoved(own, there)
}

// close notes that a move has closed the namespace, or may have when its note cannot be read.
func (r *relocation) close(m ledger.Move, unread error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed = unread; unread == nil {
		r.closed = closedBy(m)
	}
	step := m.ID + m.Role
	if m.State == ledger.MoveBurnt {
		step += m.State
	}
	if r.said == step {
		return
	}
	r.said = step
	next := "start a node there when the move has opened it, or set Next (redis.next) to that Redis; if the move is undone, this node goes on by itself"
	switch {
	case m.State == ledger.MoveBurnt:
		next = "start this node with the Redis that the jobs stayed in"
	case m.Role == ledger.MoveTo:
		next = "this node goes on by itself when the move opens the namespace"
	case r.n.cfg.Next != nil:
		next = "this node looks every second whether it is open at " + redisconn.Addr(r.n.cfg.Next) + ", and whether the move was undone"
	}
	r.n.log.Warn("a move has closed the namespace: nothing is claimed, what runs goes on", "error", r.closed, "next", next)
}

// reopen has every job that was answered closed registered again, when no move closes the namespace any more.
func (r *relocation) reopen() {
	r.mu.Lock()
	was, said := r.closed != nil, r.said != ""
	r.closed, r.said, r.deaf = nil, "", nil
	r.mu.Unlock()
	if said {
		r.n.log.Info("no move closes the namespace any more; this node goes on")
	}
	if was && len(r.n.jobs) > 0 {
		r.n.registrar.expelled(r.n.jobs[0], sealed) // one that is tried at once brings the others with it
	}
}

// hear notes whether Next could be asked, and says when that changes.
func (r *relocation) hear(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch was := r.deaf; {
	case err != nil && was == nil:
		r.n.log.Warn("it cannot be seen whether the namespace is open where it moves to", "to", redisconn.Addr(r.n.cfg.Next), "error", err)
	case err == nil && was != nil:
		r.n.log.Info("it can be seen again whether the namespace is open where it moves to", "to", redisconn.Addr(r.n.cfg.Next))
	}
	r.deaf = err
}

// before says, before the node joins, whether the namespace has moved to Next. It has too when there is nothing here
// any more: a Redis that was emptied after the move must not be made use of anew.
func (r *relocation) before(ctx context.Context) bool {
	n := r.n
	if n.cfg.Next == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	here, err := controlAt(ctx, n.client, n.cfg.Namespace)
	if err != nil {
		return false // to open it will tell
	}
	there, err := controlAt(ctx, n.cfg.Next, n.cfg.Namespace)
	if here.Partitions == 0 {
		m, bad := ledger.ParseMove(there.Move)
		return err == nil && bad == nil && m.Role == ledger.MoveTo && m.State == ledger.MoveOpen
	}
	return err == nil && ledger.HasMoved(here, there)
}

// closes says whether nothing may be claimed where this is noted.
func closes(m ledger.Move) bool {
	return m.Role == ledger.MoveFrom || m.Role == ledger.MoveTo && m.State != ledger.MoveOpen
}

// closedBy is what scripts are answered by the gates that such a move has closed.
func closedBy(m ledger.Move) error {
	e := &ledger.ClosedError{State: ledger.MoveSealed, Move: m.ID, Where: m.Peer}
	switch {
	case m.State == ledger.MoveBurnt:
		e.State = ledger.MoveBurnt
	case m.Role == ledger.MoveTo:
		e.State = ledger.MoveFilling
	}
	return e
}

// controlAt reads a namespace's control record; the zero Control when there is none.
func controlAt(ctx context.Context, client redis.UniversalClient, namespace string) (ledger.Control, error) {
	l, err := ledger.OpenExisting(ctx, client, ledger.Config{Namespace: namespace})
	if err == nil {
		var c ledger.Control
		if c, err = l.Control(ctx); err == nil {
			return c, nil
		}
	}
	if errors.Is(err, ledger.ErrNoNamespace) {
		err = nil
	}
	return ledger.Control{}, err
}
