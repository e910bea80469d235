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

// The roles whose calls show what is late, and take it, see late; and the one whose calls write
// in any case.
const (
	roleSweep = "sweep"
	roleClaim = "claim"
	roleBeat  = "beat"
)

// sayAgain is how often a trouble that lasts is logged.
const sayAgain = 10 * time.Second

// calm is for how long Redis must have answered for a failure to be news.
const calm = time.Second

// Health is the node's word on Redis: every role reports to it, it logs changes once, and Ready
// asks it. That Redis does not answer is one trouble, whoever finds it; that it takes no writes is another one, until it has taken
// one; a call that Redis refuses is the trouble of the role that made it, until the same role succeeds.
type Health struct {
	log    *slog.Logger
	client redis.UniversalClient // whose masters are looked for anew when one does not answer
	look   chan struct{}         // holds one signal: look who the server is, Redis answers again
	closed func()                // called when a move has closed the namespace, which is no trouble of a role; it does not block

	mu       sync.Mutex
	away     trouble
	deaf     trouble
	loud     bool      // that Redis is away was logged
	back     time.Time // when Redis answered again; zero: it always has
	blind    bool      // a sweep or a claim is among what it has not answered
	sighted  time.Time // when it answered again after that; zero: it always has
	refusals map[string]trouble
}

// NewHealth has nothing to say of a client's Redis yet. closed is called, and must not block, when a script was answered that a move has closed the
// namespace.
func NewHealth(client redis.UniversalClient, closed func(), log *slog.Logger) *Health {
	return &Health{log: log, client: client, look: make(chan struct{}, 1), closed: closed}
}

// trouble is an error that lasts; the zero value is none.
type trouble struct {
	err               error
	since, said, last time.Time
}

// again notes the error once more and says whether it is time to log it.
func (t *trouble) again(err error) bool {
	now := time.Now()
	if t.err == nil {
		t.since = now
	}
	say := t.err == nil || now.Sub(t.said) >= sayAgain
	if say {
		t.said = now
	}
	t.err, t.last = err, now
	return say
}

// Fail takes up that a call of a role failed.
func (h *Health) Fail(role string, err error) {
	if errors.Is(err, ledger.ErrClosed) {
		h.closed()
		return
	}
	h.unanswered(err)
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(err, locking.ErrUnreachable) {
		now := time.Now()
		h.blind = h.blind || role == roleSweep || role == roleClaim
		if redisconn.ReadOnly(err) {
			if h.deaf.again(err) {
				h.log.Warn("Redis takes no writes: it loads its data, is a replica or lacks replicas; nothing is claimed until it does, and what runs ends before its lease",
					"error", err, "for", time.Since(h.deaf.since).Round(time.Millisecond))
			}
			return
		}
		if h.away.err == nil && !h.back.IsZero() && now.Sub(h.back) < calm {
			// Calls fail and succeed by turns, as in a failover: that is worth a line if it lasts.
			h.away = trouble{err: err, since: now, said: now.Add(calm - sayAgain)}
		}
		if h.away.again(err) {
			h.loud = true
			h.log.Warn("Redis does not answer; nothing is claimed until it does, and what runs ends before its lease", "error", err,
				"for", time.Since(h.away.since).Round(time.Millisecond))
		}
		return
	}
	t := h.refusals[role]
	if t.again(err) {
		next := "see the error; the node goes on trying"
		if errors.Is(err, ledger.ErrClock) {
			next = "the node reads the clock again by itself; if this lasts, look at the clocks of Redis' machine"
		}
		h.log.Error("Redis refused a call", "role", role, "error", err, "next", next)
	}
	if h.refusals == nil {
		h.refusals = make(map[string]trouble)
	}
	h.refusals[role] = t
}

// OK takes up that a call of a role was answered.
func (h *Health) OK(role string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.away.err != nil {
		if h.loud {
			h.log.Info("Redis answers again", "after", time.Since(h.away.since).Round(time.Millisecond))
		}
		h.away, h.back, h.loud = trouble{}, time.Now(), false
		h.heard()
	}
	if h.deaf.err != nil && (role == roleBeat || role == "open") {
		h.log.Info("Redis takes writes again", "after", time.Since(h.deaf.since).Round(time.Millisecond))
		h.deaf = trouble{}
		h.heard()
	}
	if t, was := h.refusals[role]; was {
		h.log.Info("Redis takes the call again", "role", role, "after", time.Since(t.since).Round(time.Millisecond))
		delete(h.refusals, role)
	}
}

// heard takes up that an outage is over. The caller has the lock.
func (h *Health) heard() {
	if h.deaf.err != nil {
		return
	}
	if h.blind {
		h.blind, h.sighted = false, time.Now()
	}
	wait.Signal(h.look)
}

// askedAnew is how long after Redis is back a node may take to ask again for what it goes first for: claims that
// failed wait for that long.
const askedAnew = time.Second

// late is how late something counts as for the turns of nodes, that is late by so much: while Redis is away
// everything becomes late for all nodes alike, and nobody's turn passes until they can ask again. A node whose sweeps
// and claims are answered has seen whose turn passed, whatever becomes of its other calls: were beats that fail again
// and again an outage each, it would wait for as long as they do.
func (h *Health) late(by time.Duration) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.sighted.IsZero() {
		return by
	}
	return min(by, time.Since(h.sighted)-askedAnew)
}

// unanswered has a Cluster's client look who is master of what now: for the partitions of a master that died, none but their own
// calls fail.
func (h *Health) unanswered(err error) { redisconn.Refresh(context.Background(), h.client, err) }

// Trouble is what is wrong with Redis, nil when nothing is.
func (h *Health) Trouble() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	errs := []error{h.away.err, h.deaf.err}
	for _, role := range slices.Sorted(maps.Keys(h.refusals)) {
		if time.Since(h.refusals[role].last) > 3*sayAgain {
			continue // the role has not had anything to do since
		}
		errs = append(errs, fmt.Errorf("%s: %w", role, h.refusals[role].err))
	}
	return errors.Join(errs...)
}

// UnknownFormats says, at a change and no more often than sayAgain, how many records there are that
// this version does not understand. One role uses it.
type UnknownFormats struct {
	Log   *slog.Logger
	count int
	said  time.Time
}

// Note says that there are so many somewhere.
func (s *UnknownFormats) Note(n int, what string) {
	if n == 0 || n == s.count || time.Since(s.said) < sayAgain {
		return
	}
	s.count, s.said = n, time.Now()
	s.Log.Warn("records that this version does not understand are left alone; if they are not a newer node's, remove them by hand", "where", what, "records", n)
}
