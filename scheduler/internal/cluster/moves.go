package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// ErrMoved is returned by Run when the namespace has moved to the Redis of Config.Next and is open
// there. Make a new node with New on that client and run it.
var ErrMoved = errors.New("the namespace has moved to another Redis, where it is open; start a node there")

// movesEvery is how often a node checks the state of a move.
const movesEvery = time.Second

// idleMovesEvery is how often it checks when it has no Next and no move is known. Idle nodes check
// too; otherwise they would recreate a namespace that was emptied after a move.
const idleMovesEvery = 10 * time.Second

// Moves follows a move of the node's namespace to or from another Redis.
//
//	open ── a script answers closed, or the control record says so ──► closed ── open at Next, by this move ──► moved
//	  ▲                                                                  │
//	  └── the control record does not say so, and a call is accepted ────┘
//
// While the namespace is closed the node claims nothing, is not ready, checks every second, and
// creates nothing that Redis has lost. When it has moved, Run ends. The gate of each partition
// decides, which every script checks; the control record says why, and when to try again.
type Moves struct {
	MovesConfig
	noticed   chan struct{} // holds one signal: a script answered closed
	maybeOpen chan struct{} // holds one signal: what a move has closed may be open again
	moved     atomic.Bool

	mu      sync.Mutex
	closed  error          // why nothing is claimed; nil while the namespace is open as far as is known
	noted   bool           // the control record said so at the last check
	lost    bool           // there is no control record any more
	from    ledger.Control // the last record of a move from here; no later record invalidates it
	logged  string         // the step that was logged as having closed the namespace; "" when it is open again
	nextErr error          // why Next could not be read
}

// MovesConfig holds what is needed to follow a move.
type MovesConfig struct {
	Client, Next    redis.UniversalClient // where the namespace is, and where it is going to be; nil: nowhere
	Namespace, Name string                // Name is the node's
	Jobs            *work.Jobs
	Log             *slog.Logger
}

// NewMoves knows of no move yet.
func NewMoves(c MovesConfig) *Moves {
	return &Moves{MovesConfig: c, noticed: make(chan struct{}, 1), maybeOpen: make(chan struct{}, 1)}
}

// NoteClosed notes a script's answer that the partition is closed, an error that wraps ledger.ErrClosed. It does not block.
func (r *Moves) NoteClosed(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed == nil {
		r.closed = err // the next check finds out more
		wait.Signal(r.noticed)
	}
}

// Err is why the node is not ready; nil when no move has closed the namespace.
func (r *Moves) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil && r.nextErr != nil {
		return fmt.Errorf("%w; next: %w", r.closed, r.nextErr)
	}
	return r.closed
}

// Moved reports whether the namespace has moved to Next and is open there.
func (r *Moves) Moved() bool { return r.moved.Load() }

// isClosed reports whether the namespace is closed as far as is known.
func (r *Moves) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed != nil
}

// Gone is the error of Run when the namespace has moved.
func (r *Moves) Gone() error {
	return fmt.Errorf("scheduler: node %s: %w", r.Name, ErrMoved)
}

// Run checks until ctx ends: every second while there may be a change, else rarely. When the
// namespace has moved it calls depart and returns.
func (r *Moves) Run(ctx context.Context, l *ledger.Ledger, depart func()) {
	rarely := time.NewTicker(idleMovesEvery)
	defer rarely.Stop()
	for ctx.Err() == nil {
		if r.Next == nil && !r.isClosed() {
			select {
			case <-ctx.Done():
				return
			case <-r.noticed:
			case <-rarely.C:
			}
		}
		if r.check(ctx, l) {
			r.moved.Store(true)
			r.Log.Info("the namespace has moved, and is open there: this node stops here", "to", redisconn.Addr(r.Next))
			depart()
			return
		}
		wait.For(ctx, movesEvery)
	}
}

// check checks the state of the move, logs a change, and reports whether the namespace has moved to
// Next. It does not need this Redis for that, which may be switched off by then.
func (r *Moves) check(ctx context.Context, l *ledger.Ledger) bool {
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	own, err := l.Control(call)
	cancel()
	m, unread := ledger.ParseMove(own.Move)
	switch {
	case errors.Is(err, ledger.ErrNoNamespace):
		r.vanished()
	case err != nil: // other roles log it
	case unread == nil && !m.Closes():
		r.notClosed(m)
	default:
		r.close(m, unread)
	}
	r.mu.Lock()
	from, closed := r.from, r.closed != nil
	r.mu.Unlock()
	if !closed || from.Move == "" || r.Next == nil {
		return false
	}
	call, cancel = context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	there, err := ControlAt(call, r.Next, r.Namespace)
	r.noteNext(err)
	return err == nil && ledger.HasMoved(from, there)
}

// close handles a control record that closes the namespace, or that cannot be read.
func (r *Moves) close(m ledger.Move, unread error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted, r.lost = true, false
	if r.closed = unread; unread == nil {
		r.closed = closedBy(m)
	}
	r.logStep(m)
}

// refused handles a script's answer that a move has closed the namespace. The control record says
// the same, unless a failover has lost it.
func (r *Moves) refused(err error) {
	e := (*ledger.ClosedError)(nil)
	if !errors.As(err, &e) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.noted {
		return
	}
	if r.closed == nil {
		wait.Signal(r.noticed)
	}
	r.closed = e
	m := ledger.Move{ID: e.Move, State: e.State, Peer: e.Where}
	switch e.State {
	case ledger.MoveSealed:
		m.Role = ledger.MoveFrom
	case ledger.MoveFilling, ledger.MoveBurnt:
		m.Role = ledger.MoveTo
	}
	r.logStep(m)
}

// logStep logs once what has closed the namespace and what comes next, and remembers it for when
// this Redis cannot be read.
func (r *Moves) logStep(m ledger.Move) {
	if m.Role == ledger.MoveFrom {
		r.from = ledger.Control{Move: m.String()}
	}
	step := m.ID + m.Role
	if m.State == ledger.MoveBurnt {
		step += m.State
	}
	if r.logged == step {
		return
	}
	r.logged = step
	next := "start a node there when the move has opened it, or set Next (redis.next) to that Redis; if the move is undone, this node goes on by itself"
	switch {
	case m.State == ledger.MoveBurnt:
		next = "start this node with the Redis that the jobs stayed in"
	case m.Role == ledger.MoveTo:
		next = "this node goes on by itself when the move opens the namespace"
	case r.Next != nil:
		next = "this node checks every second whether it is open at " + redisconn.Addr(r.Next) + ", and whether the move was undone"
	}
	r.Log.Warn("a move has closed the namespace: nothing is claimed, runs go on", "error", r.closed, "next", next)
}

// vanished handles the loss of the control record, and reports whether a move keeps the namespace closed. A namespace that a move has
// closed is not created again, because its jobs are elsewhere. That holds until there is a record again: a
// namespace that somebody else creates here has nothing of theirs.
func (r *Moves) vanished() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed == nil || r.lost {
		return r.lost // where no move has closed it, the registrar writes the record again
	}
	by, e := "a move", (*ledger.ClosedError)(nil)
	if errors.As(r.closed, &e) && e.Move == "" {
		r.noted = false
		r.reopen() // a gate that nobody could read is gone; no move is known
		wait.Signal(r.maybeOpen)
		return false
	} else if e != nil {
		by = fmt.Sprintf("move %s (the other side is %s)", e.Move, e.Where)
	}
	r.noted, r.lost = true, true
	r.closed = fmt.Errorf("%w: this Redis has lost the namespace during %s, or after it; restart this node with the Redis that has it", ledger.ErrClosed, by)
	r.Log.Warn("the namespace is not created again here", "error", r.closed)
	return true
}

// notClosed handles a control record m that does not close the namespace. After a script answered
// closed, one is called again to see whether it still does.
func (r *Moves) notClosed(m ledger.Move) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed == nil || r.lost && m.ID == "" {
		return
	}
	r.lost = false // a move has brought it here
	if r.noted = false; r.Jobs.Len() > 0 {
		wait.Signal(r.maybeOpen)
	} else {
		r.reopen()
	}
}

// accepted notes that a call was accepted. The namespace is open, unless the control record says
// otherwise.
func (r *Moves) accepted() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil && !r.noted {
		r.reopen()
	}
}

func (r *Moves) reopen() {
	if r.logged != "" {
		r.Log.Info("no move closes the namespace any more; this node goes on")
	}
	r.closed, r.logged, r.nextErr = nil, "", nil
}

// noteNext notes whether Next could be read, and logs a change.
func (r *Moves) noteNext(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch was := r.nextErr; {
	case err != nil && was == nil:
		r.Log.Warn("the Redis to which the namespace moves cannot be read", "to", redisconn.Addr(r.Next), "error", err)
	case err == nil && was != nil:
		r.Log.Info("the Redis to which the namespace moves can be read again", "to", redisconn.Addr(r.Next))
	}
	r.nextErr = err
}
