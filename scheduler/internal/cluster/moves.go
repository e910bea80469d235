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
	"github.com/escapement/escapement/scheduler/internal/lane"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
	"github.com/escapement/escapement/scheduler/internal/work"
)

// ErrMoved is returned by Run when the namespace has moved to the Redis of Config.Next and is open there. Make another
// node with New on that client and run it.
var ErrMoved = errors.New("the namespace has moved to another Redis, where it is open; start a node there")

// movesEvery is how often a node looks how a move stands.
const movesEvery = time.Second

// movesRarely is how often it does when it would go nowhere and nothing is known to be closed: one to whom nothing is due
// must know of a move before the place is emptied, or it would make the namespace anew there.
const movesRarely = 10 * time.Second

// Moves is what a node knows of a move of its namespace to another Redis, or from one to here.
//
//	open ── a script is answered closed, or the control record says so ──► closed ── open at Next, by the same move ──► moved
//	  ▲                                                                      │
//	  └── no note says so any more, and what was answered closed is taken ───┘
//
// Closed, the node claims nothing, is not ready, looks every second, and makes nothing anew that the Redis has lost. Moved,
// Run ends. What decides is the gate of each partition, which every script looks at; the control record says why, and when
// to ask again.
type Moves struct {
	MovesConfig
	news  chan struct{} // holds one signal: a script was answered closed
	ajar  chan struct{} // holds one signal: what a move has closed may be open again
	moved atomic.Bool

	mu     sync.Mutex
	closed error          // why nothing is claimed; nil while the namespace is open as far as is known
	noted  bool           // the control record said so at the last look
	lost   bool           // there is no control record any more
	from   ledger.Control // the last that said that the namespace moves from here; no later one makes it untrue
	said   string         // which step of a move was logged to have closed the namespace; "" when it was logged that none does any more
	deaf   error          // why it is not known how things stand at Next
}

// MovesConfig is what is needed to follow a move.
type MovesConfig struct {
	Client, Next    redis.UniversalClient // where the namespace is, and where it is going to be, nil for nowhere
	Namespace, Name string                // and the node's name
	Jobs            *work.Jobs
	Log             *slog.Logger
}

// NewMoves knows of no move yet.
func NewMoves(c MovesConfig) *Moves {
	return &Moves{MovesConfig: c, news: make(chan struct{}, 1), ajar: make(chan struct{}, 1)}
}

// Shut is told that a script was answered closed. It does not block.
func (r *Moves) Shut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed == nil {
		r.closed = ledger.ErrClosed // more after the next look
		wait.Signal(r.news)
	}
}

// Trouble is why the node is not ready, nil when no move has closed the namespace.
func (r *Moves) Trouble() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil && r.deaf != nil {
		return fmt.Errorf("%w; next: %w", r.closed, r.deaf)
	}
	return r.closed
}

// Moved says whether the namespace has moved to Next, and is open there.
func (r *Moves) Moved() bool { return r.moved.Load() }

// isClosed says whether the namespace is closed as far as is known.
func (r *Moves) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed != nil
}

// Gone is what Run returns when the namespace has moved.
func (r *Moves) Gone() error {
	return fmt.Errorf("scheduler: node %s: %w", r.Name, ErrMoved)
}

// Run looks until ctx ends: every second while there is something to see, else rarely. When the namespace has moved it
// calls depart and returns.
func (r *Moves) Run(ctx context.Context, l *ledger.Ledger, depart func()) {
	rarely := time.NewTicker(movesRarely)
	defer rarely.Stop()
	for ctx.Err() == nil {
		if r.Next == nil && !r.isClosed() {
			select {
			case <-ctx.Done():
				return
			case <-r.news:
			case <-rarely.C:
			}
		}
		if r.look(ctx, l) {
			r.moved.Store(true)
			r.Log.Info("the namespace has moved, and is open there: this node ends here", "to", redisconn.Addr(r.Next))
			depart()
			return
		}
		wait.For(ctx, movesEvery)
	}
}

// look sees how things stand, says so once, and says whether the namespace has moved to Next. It need not be able to see
// this side for that, which may be switched off by then.
func (r *Moves) look(ctx context.Context, l *ledger.Ledger) bool {
	call, cancel := context.WithTimeout(ctx, lane.CallTimeout)
	own, err := l.Control(call)
	cancel()
	m, unread := ledger.ParseMove(own.Move)
	switch {
	case errors.Is(err, ledger.ErrNoNamespace):
		r.vanished()
	case err != nil: // other roles say so
	case unread == nil && !Closes(m):
		r.unnoted(m)
	default:
		r.close(m, unread)
	}
	r.mu.Lock()
	from, closed := r.from, r.closed != nil
	r.mu.Unlock()
	if !closed || from.Move == "" || r.Next == nil {
		return false
	}
	call, cancel = context.WithTimeout(ctx, lane.CallTimeout)
	defer cancel()
	there, err := ControlAt(call, r.Next, r.Namespace)
	r.hear(err)
	return err == nil && ledger.HasMoved(from, there)
}

// close takes up a note that closes the namespace, or may when it cannot be read.
func (r *Moves) close(m ledger.Move, unread error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noted, r.lost = true, false
	if r.closed = unread; unread == nil {
		r.closed = closedBy(m)
	}
	r.say(m)
}

// refused takes up that a script was answered closed, and by which move. The control record says the same, unless a
// failover has lost its note.
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
		wait.Signal(r.news)
	}
	r.closed = e
	m := ledger.Move{ID: e.Move, State: e.State, Peer: e.Where}
	switch e.State {
	case ledger.MoveSealed:
		m.Role = ledger.MoveFrom
	case ledger.MoveFilling, ledger.MoveBurnt:
		m.Role = ledger.MoveTo
	}
	r.say(m)
}

// say logs once what has closed the namespace and what comes next, and keeps it for when this side cannot be read.
func (r *Moves) say(m ledger.Move) {
	if m.Role == ledger.MoveFrom {
		r.from = ledger.Control{Move: m.String()}
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
	case r.Next != nil:
		next = "this node looks every second whether it is open at " + redisconn.Addr(r.Next) + ", and whether the move was undone"
	}
	r.Log.Warn("a move has closed the namespace: nothing is claimed, what runs goes on", "error", r.closed, "next", next)
}

// vanished takes up that there is no control record here. Where a move has closed the namespace it is not made anew, for the
// jobs are elsewhere; that is so until there is a note again, for whoever makes another namespace here has nothing of them.
func (r *Moves) vanished() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed == nil || r.lost {
		return // where no move has closed it, the registrar writes it again
	}
	by := "a move"
	if e := (*ledger.ClosedError)(nil); errors.As(r.closed, &e) {
		by = fmt.Sprintf("move %s (the other side is %s)", e.Move, e.Where)
	}
	r.noted, r.lost = true, true
	r.closed = fmt.Errorf("%w: this Redis has lost the namespace in the middle of %s, or after it; restart this node with the Redis where it is", ledger.ErrClosed, by)
	r.Log.Warn("the namespace is not made anew here", "error", r.closed)
}

// unnoted takes up that no note closes the namespace, m being the one there is. When something was answered closed, it is
// seen whether it still is.
func (r *Moves) unnoted(m ledger.Move) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed == nil || r.lost && m.ID == "" {
		return
	}
	r.lost = false // a move has brought it here
	if r.noted = false; r.Jobs.Len() > 0 {
		wait.Signal(r.ajar)
	} else {
		r.reopen()
	}
}

// taken is told that what was answered closed was taken. The namespace is open, unless a note says otherwise.
func (r *Moves) taken() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed != nil && !r.noted {
		r.reopen()
	}
}

func (r *Moves) reopen() {
	if r.said != "" {
		r.Log.Info("no move closes the namespace any more; this node goes on")
	}
	r.closed, r.said, r.deaf = nil, "", nil
}

// hear notes whether Next could be asked, and says when that changes.
func (r *Moves) hear(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch was := r.deaf; {
	case err != nil && was == nil:
		r.Log.Warn("it cannot be seen whether the namespace is open where it moves to", "to", redisconn.Addr(r.Next), "error", err)
	case err == nil && was != nil:
		r.Log.Info("it can be seen again whether the namespace is open where it moves to", "to", redisconn.Addr(r.Next))
	}
	r.deaf = err
}
