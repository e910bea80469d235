package locktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/escapement/escapement/locking"
)

// A history is the calls of a few clients for one lock, with their answers and the times before and after. There must be
// an order of all calls, each between its two times, in which a single lock with a ttl would give these answers.

const (
	historyClients = 4
	historySteps   = 9 // of each client
	historyTTL     = 200 * time.Millisecond
	historyCall    = 60 * time.Millisecond // limit of one call
	historyPause   = 90 * time.Millisecond // most between two calls of one client
)

// HistoryConfig holds the settings of Histories.
type HistoryConfig struct {
	Seed   uint64 // of the first; each next one has the next seed
	Count  int    // how many
	Bubble bool   // each in a testing/synctest bubble, as in RunInBubble

	// Share is what the calls are for, at a driver that is a locking.Sharer: a semaphore with its permits, or
	// with a mode a read-write lock. The zero value is a lock.
	Share locking.Share
}

// Histories plays random concurrent histories, each against a store of its own, and checks that a lock could have given the
// answers: with lapsed leases, lost replies, take-overs, and tokens that increase. A failure prints its seed and all calls.
func Histories(t *testing.T, c HistoryConfig, open func(tb testing.TB) Store) {
	in := func(t *testing.T, f func(t *testing.T)) { f(t) }
	if c.Bubble {
		in = func(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) }
	}
	calls, unknown, cut := 0, 0, 0
	for i := range c.Count {
		in(t, func(t *testing.T) {
			ops, whole := history(t, open(t), c.Share, c.Seed+uint64(i))
			calls, unknown = calls+len(ops), unknown+unanswered(ops)
			if !whole {
				cut++
			}
		})
		if t.Failed() {
			return
		}
	}
	t.Logf("%d histories from seed %d on: %d calls, %d of them without an answer, %d only checked in part", c.Count, c.Seed, calls, unknown, cut)
	if cut > 1+c.Count/10 {
		t.Errorf("%d of %d histories were checked in part only: too few calls are answered", cut, c.Count)
	}
}

// History plays and checks one random history. It returns the number of its calls, and of those without an answer.
func History(tb testing.TB, s Store, seed uint64) (calls, unknown int) {
	tb.Helper()
	ops, _ := history(tb, s, locking.Share{}, seed)
	return len(ops), unanswered(ops)
}

// ShareHistory is History for a share, see HistoryConfig.Share.
func ShareHistory(tb testing.TB, s Store, share locking.Share, seed uint64) (calls, unknown int) {
	tb.Helper()
	ops, _ := history(tb, s, share, seed)
	return len(ops), unanswered(ops)
}

func history(tb testing.TB, s Store, share locking.Share, seed uint64) (ops []porcupine.Operation, whole bool) {
	tb.Helper()
	ops = playHistory(tb, s, share, seed)
	return ops, checkHistory(tb, modelOf(share), ops, seed)
}

func unanswered(ops []porcupine.Operation) (n int) {
	for _, op := range ops {
		if op.Output.(answer).kind == unknownAnswer {
			n++
		}
	}
	return n
}

func historyCases() []testCase {
	of := func(share locking.Share) func(tb testing.TB, s Store) {
		return func(tb testing.TB, s Store) { ShareHistory(tb, s, share, rand.Uint64()) }
	}
	return []testCase{
		{name: "a random history", run: of(locking.Share{})},
		{name: "a random history of permits", needs: needsShares, run: of(locking.Share{Permits: 2})},
		{name: "a random history of readers and writers", needs: needsShares, run: of(locking.Share{Mode: locking.Read})},
	}
}

// story is a history while it is being played.
type story struct {
	start time.Time
	mu    sync.Mutex
	ops   []porcupine.Operation
}

// playHistory lets the clients do what seed says.
func playHistory(tb testing.TB, s Store, share locking.Share, seed uint64) []porcupine.Operation {
	h := &story{start: time.Now()}
	var shared sharedTokens
	var wg sync.WaitGroup
	for i := range historyClients {
		d, n := s.Connect(tb)
		p := &player{loose: s.Quorum, share: share, story: h, tokens: &shared, driver: d, net: n, id: i, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		wg.Go(func() {
			for range historySteps {
				p.step(tb.Context())
			}
			n.Heal()
		})
	}
	wg.Wait()
	end := time.Since(h.start)
	for i, op := range h.ops {
		if op.Output.(answer).kind == unknownAnswer {
			h.ops[i].Return = int64(end) // it may take effect at any time
		}
	}
	return h.ops
}

// sharedTokens is what the clients know of each other's grants.
type sharedTokens struct {
	mu   sync.Mutex
	last locking.Token
}

func (s *sharedTokens) seen(t locking.Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, t)
}

func (s *sharedTokens) get() locking.Token {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// player is one client of a history.
type player struct {
	story  *story
	tokens *sharedTokens
	driver locking.Driver
	net    Network
	id     int
	rng    *rand.Rand

	loose    bool
	share    locking.Share
	acquired int // so many owner values were used
	token    locking.Token
}

// step makes one call, now and then over a network that loses something.
func (p *player) step(ctx context.Context) {
	<-time.After(time.Duration(p.rng.Int64N(int64(historyPause))))
	p.net.Delay(time.Duration(p.rng.Int64N(int64(historyCall / 3))))
	switch p.rng.IntN(12) {
	case 0:
		p.net.LoseReply()
	case 1:
		p.net.CutRequests()
	case 2:
		p.net.CutReplies()
	}
	p.call(ctx, p.choose())
	p.net.Heal()
}

// choose returns what to ask next.
func (p *player) choose() question {
	q := question{loose: p.loose, ttl: historyTTL, owner: p.owner()}
	switch n := p.rng.IntN(20); {
	case p.acquired == 0 || n < 7:
		p.acquired++
		q.kind, q.owner = askAcquire, p.owner()
	case n < 10: // the same once more: after a lost reply, a lapse, a release
		q.kind = askAcquire
	case n < 14:
		q.kind = askRelease
	case n < 17:
		q.kind, q.token = askRenew, max(p.token, 1)
	case n < 18:
		p.acquired++
		q.kind, q.owner, q.token = askAcquire, p.owner(), p.tokens.get()
	default:
		q.kind = askOwner
	}
	q.write = p.share.Mode != locking.Exclusive && q.owner%3 == 0
	return q
}

// sharer is the driver that asks q.
func (p *player) sharer(q question) locking.Driver {
	share := p.share
	if share == (locking.Share{}) {
		return p.driver
	}
	if q.write {
		share.Mode = locking.Write
	}
	return p.driver.(locking.Sharer).Share(share)
}

// owner is the number of the client's present owner value, 1 to 63.
func (p *player) owner() int { return 1 + p.id + historyClients*max(p.acquired-1, 0) }

// call asks q and notes what came of it.
func (p *player) call(ctx context.Context, q question) {
	ctx, cancel := context.WithTimeout(ctx, historyCall)
	defer cancel()
	before := time.Since(p.story.start)
	a := p.ask(ctx, q)
	q.sent, a.came = before, time.Since(p.story.start)
	if a.kind == granted {
		p.token = a.token
		p.tokens.seen(a.token)
	}
	p.story.mu.Lock()
	defer p.story.mu.Unlock()
	p.story.ops = append(p.story.ops, porcupine.Operation{
		ClientId: p.id, Input: q, Call: int64(before), Output: a, Return: int64(a.came),
	})
}

func (p *player) ask(ctx context.Context, q question) answer {
	owner, driver := ownerValue(q.owner), p.sharer(q)
	switch q.kind {
	case askAcquire:
		g, err := driver.Acquire(ctx, locking.Request{Name: name, Owner: owner, TTL: q.ttl, From: q.token})
		if err == nil {
			return answer{kind: granted, token: g.Token, asked: g.Asked.Sub(p.story.start)}
		}
		return answerTo(err)
	case askRelease:
		return answerTo(driver.Release(ctx, name, owner))
	case askRenew:
		got, err := driver.Renew(ctx, []locking.Renewal{{Name: name, Owner: owner, Token: q.token, TTL: q.ttl}})
		switch {
		case err != nil || len(got) != 1 || got[0] == locking.Unknown:
			return answer{kind: unknownAnswer}
		case got[0] == locking.Gone || got[0] == locking.Revoked:
			return answer{kind: notOurs}
		}
		return answer{kind: done}
	case askOwner:
	}
	o, err := driver.Owner(ctx, name)
	switch {
	case err != nil:
		return answer{kind: unknownAnswer}
	case !o.Held():
		return answer{kind: free}
	}
	return answer{kind: heldBy, owner: ownerNumber(o.Owner), token: o.Token}
}

func answerTo(err error) answer {
	var held *locking.HeldError
	switch {
	case err == nil:
		return answer{kind: done}
	case errors.As(err, &held):
		return answer{kind: heldBy, owner: ownerNumber(held.Owner)}
	case errors.Is(err, locking.ErrLost):
		return answer{kind: notOurs}
	}
	return answer{kind: unknownAnswer} // whatever else it is, it says nothing about the lock
}

func ownerValue(n int) string { return fmt.Sprintf("owner-%d", n) }

func ownerNumber(s string) (n int) {
	if _, err := fmt.Sscanf(s, "owner-%d", &n); err != nil {
		return nobody
	}
	return n
}
