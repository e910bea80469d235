package lane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redisconn"
	"github.com/escapement/escapement/scheduler/internal/ledger"
	"github.com/escapement/escapement/scheduler/internal/wait"
)

// Roles whose calls count for Health.overdue and for a read-only server. Sweeps and claims notice overdue
// jobs; a heartbeat writes in any case.
const (
	roleSweep = "sweep"
	roleClaim = "claim"
	roleBeat  = "beat"
)

// logEvery is how often a lasting error is logged.
const logEvery = 10 * time.Second

// flapWindow is how long Redis must have answered before a new failure is logged at once.
const flapWindow = time.Second

// Health records whether Redis works. All roles report their calls to it; it logs changes once and
// answers Ready. Unreachable is one error, whichever role finds it. Read-only is another, until
// Redis takes a write. A refused call is an error of its role until that role succeeds.
type Health struct {
	log    *slog.Logger
	client redis.UniversalClient // refreshes its topology when a master does not answer
	check  chan struct{}         // holds one signal: check the server's id, Redis answers again
	closed func(error)           // called when a move has closed the namespace; it does not block

	namespace    string
	clientClosed chan struct{}
	closeOnce    sync.Once

	mu           sync.Mutex
	unreachable  lastingError
	readOnly     lastingError
	logged       bool      // it was logged that Redis is unreachable
	answersSince time.Time // when Redis answered again; zero: it always has
	workFailed   bool      // a sweep or a claim is among the failed calls
	worksSince   time.Time // when Redis answered again after that; zero: it always has
	refusals     map[string]lastingError
}

// NewHealth makes the health of a namespace in a client's Redis. closed is called when a move has closed the
// namespace; it must not block.
func NewHealth(client redis.UniversalClient, namespace string, closed func(error), log *slog.Logger) *Health {
	return &Health{log: log, client: client, namespace: namespace, check: make(chan struct{}, 1), clientClosed: make(chan struct{}), closed: closed}
}

// ClientClosed is closed when the program has closed the node's client of Redis: the node cannot go on.
func (h *Health) ClientClosed() <-chan struct{} { return h.clientClosed }

// lastingError is an error and how long it has lasted; the zero value is none.
type lastingError struct {
	err                 error
	since, logged, last time.Time
}

// repeat notes the error once more and reports whether to log it.
func (t *lastingError) repeat(err error) bool {
	now := time.Now()
	if t.err == nil {
		t.since = now
	}
	say := t.err == nil || now.Sub(t.logged) >= logEvery
	if say {
		t.logged = now
	}
	t.err, t.last = err, now
	return say
}

// Fail notes that a call of a role failed.
func (h *Health) Fail(role string, err error) {
	if errors.Is(err, ledger.ErrClosed) {
		h.closed(err)
		return
	}
	//guard:client-closed P8 a node whose client was closed would retry for ever, and settle nothing
	if errors.Is(err, redis.ErrClosed) && redisconn.IsClosed(context.Background(), h.client) {
		h.closeOnce.Do(func() { close(h.clientClosed) })
	}
	h.refresh(err)
	err = redisconn.Explain(h.client, h.namespace, err)
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(err, locking.ErrUnreachable) {
		now := time.Now()
		h.workFailed = h.workFailed || role == roleSweep || role == roleClaim
		if redisconn.ReadOnly(err) {
			if h.readOnly.repeat(err) {
				h.log.Warn("Redis is read-only: it loads its data, is a replica or lacks replicas; nothing is claimed until it takes writes, and runs end before their leases do",
					"error", err, "for", time.Since(h.readOnly.since).Round(time.Millisecond))
			}
			return
		}
		if h.unreachable.err == nil && !h.answersSince.IsZero() && now.Sub(h.answersSince) < flapWindow {
			// Calls fail and succeed by turns, as in a failover: it is logged only if it lasts.
			h.unreachable = lastingError{err: err, since: now, logged: now.Add(flapWindow - logEvery)}
		}
		if h.unreachable.repeat(err) {
			h.logged = true
			h.log.Warn("Redis does not answer; nothing is claimed until it does, and runs end before their leases do", "error", err,
				"for", time.Since(h.unreachable.since).Round(time.Millisecond))
		}
		return
	}
	t := h.refusals[role]
	if t.repeat(err) {
		next := "see the error; the node tries again"
		if errors.Is(err, ledger.ErrClock) {
			next = "the node samples the clock again; if this lasts, check the clock of Redis' machine"
		}
		h.log.Error("Redis refused a call", "role", role, "error", err, "next", next)
	}
	if h.refusals == nil {
		h.refusals = make(map[string]lastingError)
	}
	h.refusals[role] = t
}

// OK notes that a call of a role was answered.
func (h *Health) OK(role string) {
	h.answered()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.readOnly.err != nil && (role == roleBeat || role == "open") {
		h.log.Info("Redis takes writes again", "after", time.Since(h.readOnly.since).Round(time.Millisecond))
		h.readOnly = lastingError{}
		h.outageOver()
	}
	if t, was := h.refusals[role]; was {
		h.log.Info("Redis takes the call again", "role", role, "after", time.Since(t.since).Round(time.Millisecond))
		delete(h.refusals, role)
	}
}

// answered notes that Redis answered a call.
func (h *Health) answered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unreachable.err == nil {
		return
	}
	if h.logged {
		h.log.Info("Redis answers again", "after", time.Since(h.unreachable.since).Round(time.Millisecond))
	}
	h.unreachable, h.answersSince, h.logged = lastingError{}, time.Now(), false
	h.outageOver()
}

// outageOver notes the end of an outage. The caller holds the lock.
func (h *Health) outageOver() {
	if h.readOnly.err != nil {
		return
	}
	if h.workFailed {
		h.workFailed, h.worksSince = false, time.Now()
	}
	wait.Signal(h.check)
}

// reclaimDelay is how long after an outage a node may take to claim its own jobs again.
// Failed claims wait for that long.
const reclaimDelay = time.Second

// overdue is how late something counts for the order of takeovers. During an outage everything becomes
// late for all nodes alike, so turns start anew when the nodes can claim again. Only failed sweeps
// and claims count as an outage: heartbeats that fail now and then would delay every turn.
func (h *Health) overdue(by time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.worksSince.IsZero() {
		return by
	}
	return min(by, time.Since(h.worksSince)-reclaimDelay)
}

// refresh makes a Cluster's client reload its topology. For partitions of a dead master no other
// call would.
func (h *Health) refresh(err error) { redisconn.Refresh(context.Background(), h.client, err) }

// answers reports whether Redis answers and takes writes.
func (h *Health) answers() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unreachable.err == nil && h.readOnly.err == nil
}

// Err joins the current errors of Redis and of refused calls; nil for none.
func (h *Health) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	errs := []error{h.unreachable.err, h.readOnly.err}
	for _, role := range slices.Sorted(maps.Keys(h.refusals)) {
		if time.Since(h.refusals[role].last) > 3*logEvery {
			continue // the role has had nothing to do since
		}
		errs = append(errs, fmt.Errorf("%s: %w", role, h.refusals[role].err))
	}
	return errors.Join(errs...)
}
