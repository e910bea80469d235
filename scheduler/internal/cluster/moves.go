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
// decides, which every script checks; the control record has the reason, and when to try again.
type Moves struct {
	MovesConfig
	noticed   chan struct{} // holds one signal: a script answered closed
	maybeOpen chan struct{} // holds one signal: what a move has closed may be open again
	moved     atomic.Bool

	mu      sync.Mutex
	closed  error          // why nothing is claimed; nil while no closed gate was seen
	noted   bool           // the last check found the move in the control record
	lost    bool           // there is no control record any more
	from    ledger.Control // the last record of a move from here; no later record invalidates it
	logged  string         // the step that was logged as having closed the namespace; "" when it is open again
	nextErr error          // why Next could not be read
}

// MovesConfig holds the dependencies of Moves.
type MovesConfig struct {
	Client, Next    redis.UniversalClient // where the namespace is, and where it is going to be; nil: nowhere
	Namespace, Name string                // Name is the node's
	Jobs            *work.Jobs
	Log             *slog.Logger
}

// NewMoves starts without a move.
func NewMoves(c MovesConfig) *Moves {
	return &Moves{MovesConfig: c, noticed: make(chan struct{}, 1), maybeOpen: make(chan struct{}, 1)}
}

// NoteClosed notes a script's answer that the partition is closed, an error that wraps ledger.ErrClosed. It does not block.
func (m *Moves) NoteClosed(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed == nil {
		m.closed = err // the next check finds out more
		wait.Signal(m.noticed)
	}
}

// Err is why the node is not ready; nil when no move has closed the namespace.
func (m *Moves) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed != nil && m.nextErr != nil {
		return fmt.Errorf("%w; next: %w", m.closed, m.nextErr)
	}
	return m.closed
}

// Moved reports whether the namespace has moved to Next and is open there.
func (m *Moves) Moved() bool { return m.moved.Load() }

// isClosed reports whether the namespace is closed as far as is known.
func (m *Moves) isClosed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed != nil
}

// Gone is the error of Run when the namespace has moved.
func (m *Moves) Gone() error {
	return fmt.Errorf("scheduler: node %s: %w", m.Name, ErrMoved)
}

// Run checks until ctx ends: every second while there may be a change, else rarely. When the
// namespace has moved it calls depart and returns.
func (m *Moves) Run(ctx context.Context, l *ledger.Ledger, depart func()) {
	rarely := time.NewTicker(idleMovesEvery)
	defer rarely.Stop()
	for ctx.Err() == nil {
		if m.Next == nil && !m.isClosed() {
			select {
			case <-ctx.Done():
				return
			case <-m.noticed:
			case <-rarely.C:
			}
		}
		if m.check(ctx, l) {
			m.moved.Store(true)
			m.Log.Info("the namespace has moved, and is open there: this node stops here", "to", redisconn.Addr(m.Next))
			depart()
			return
		}
		wait.For(ctx, movesEvery)
	}
}

// check checks the state of the move, logs a change, and reports whether the namespace has moved to
// Next. It does not need this Redis for that, which may be switched off by then.
func (m *Moves) check(ctx context.Context, l *ledger.Ledger) bool {
	call, cancel := context.WithTimeout(ctx, ledger.CallTimeout)
	own, err := l.Control(call)
	cancel()
	move, unread := ledger.ParseMove(own.Move)
	switch {
	case errors.Is(err, ledger.ErrNoNamespace):
		m.vanished()
	case err != nil: // other roles log it
	case unread == nil && !move.Closes():
		m.notClosed(move)
	default:
		m.close(move, unread)
	}
	m.mu.Lock()
	from, closed := m.from, m.closed != nil
	m.mu.Unlock()
	if !closed || from.Move == "" || m.Next == nil {
		return false
	}
	call, cancel = context.WithTimeout(ctx, ledger.CallTimeout)
	defer cancel()
	there, err := ControlAt(call, m.Next, m.Namespace)
	m.noteNext(err)
	return err == nil && ledger.HasMoved(from, there)
}

// close handles a control record that closes the namespace, or that cannot be read.
func (m *Moves) close(move ledger.Move, unread error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.noted, m.lost = true, false
	if m.closed = unread; unread == nil {
		m.closed = closedBy(move)
	}
	m.logStep(move)
}

// refused handles a script's answer that a move has closed the namespace. The control record shows
// the same, unless a failover has lost it.
func (m *Moves) refused(err error) {
	e := (*ledger.ClosedError)(nil)
	if !errors.As(err, &e) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.noted {
		return
	}
	if m.closed == nil {
		wait.Signal(m.noticed)
	}
	m.closed = e
	move := ledger.Move{ID: e.Move, State: e.State, Peer: e.Where}
	switch e.State {
	case ledger.MoveSealed:
		move.Role = ledger.MoveFrom
	case ledger.MoveFilling, ledger.MoveBurnt:
		move.Role = ledger.MoveTo
	}
	m.logStep(move)
}

// logStep logs once why the namespace is closed and which step comes next, and remembers both for
// when this Redis cannot be read.
func (m *Moves) logStep(move ledger.Move) {
	if move.Role == ledger.MoveFrom {
		m.from = ledger.Control{Move: move.String()}
	}
	step := move.ID + move.Role
	if move.State == ledger.MoveBurnt {
		step += move.State
	}
	if m.logged == step {
		return
	}
	m.logged = step
	next := "start a node there when the move has opened it, or set Next (redis.next) to that Redis; if the move is undone, this node goes on by itself"
	switch {
	case move.State == ledger.MoveBurnt:
		next = "start this node with the Redis that the jobs stayed in"
	case move.Role == ledger.MoveTo:
		next = "this node goes on by itself when the move opens the namespace"
	case m.Next != nil:
		next = "this node checks every second whether it is open at " + redisconn.Addr(m.Next) + ", and whether the move was undone"
	}
	m.Log.Warn("a move has closed the namespace: nothing is claimed, runs go on", "error", m.closed, "next", next)
}

// vanished handles the loss of the control record, and reports whether a move keeps the namespace
// closed. A namespace that a move has closed is not created again, because its jobs are elsewhere.
// That holds until there is a record again: a namespace that another program creates here has none
// of these jobs.
func (m *Moves) vanished() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed == nil || m.lost {
		return m.lost // where no move has closed it, the registrar writes the record again
	}
	by, e := "a move", (*ledger.ClosedError)(nil)
	if errors.As(m.closed, &e) && e.Move == "" {
		m.noted = false
		m.reopen() // an unreadable gate is gone; no move is known
		wait.Signal(m.maybeOpen)
		return false
	} else if e != nil {
		by = fmt.Sprintf("move %s (the other side is %s)", e.Move, e.Where)
	}
	m.noted, m.lost = true, true
	m.closed = fmt.Errorf("%w: this Redis has lost the namespace during %s, or after it; restart this node with the Redis that has it", ledger.ErrClosed, by)
	m.Log.Warn("the namespace is not created again here", "error", m.closed)
	return true
}

// notClosed handles a control record that does not close the namespace. After a script answered
// closed, one is called again to see whether it still does.
func (m *Moves) notClosed(move ledger.Move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed == nil || m.lost && move.ID == "" {
		return
	}
	m.lost = false // a move has brought it here
	if m.noted = false; m.Jobs.Len() > 0 {
		wait.Signal(m.maybeOpen)
	} else {
		m.reopen()
	}
}

// accepted notes that a call was accepted. The namespace is open, unless the control record has a
// move that closes it.
func (m *Moves) accepted() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed != nil && !m.noted {
		m.reopen()
	}
}

func (m *Moves) reopen() {
	if m.logged != "" {
		m.Log.Info("no move closes the namespace any more; this node goes on")
	}
	m.closed, m.logged, m.nextErr = nil, "", nil
}

// noteNext notes whether Next could be read, and logs a change.
func (m *Moves) noteNext(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch was := m.nextErr; {
	case err != nil && was == nil:
		m.Log.Warn("the Redis to which the namespace moves cannot be read", "to", redisconn.Addr(m.Next), "error", err)
	case err == nil && was != nil:
		m.Log.Info("the Redis to which the namespace moves can be read again", "to", redisconn.Addr(m.Next))
	}
	m.nextErr = err
}
