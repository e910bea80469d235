package locktest

import (
	"cmp"
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
	historySteps   = 9                      // of each client
	historyTTL     = 200 * time.Millisecond // unless Store.HistoryTTL is set; the times below are for this one
	historyCall    = 60 * time.Millisecond  // limit of one call
	historyPause   = 90 * time.Millisecond  // most between two calls of one client
)

// HistoryConfig holds the settings of Histories.
type HistoryConfig struct {
	Seed   uint64 // of the first; each next one has the next seed
	Count  int    // how many
	Bubble bool   // each in a testing/synctest bubble, as in RunInBubble

	// Share is the subject of the calls, at a driver that is a locking.Sharer: a semaphore with its
	// permits, or with a mode a read-write lock. The zero value is a lock.
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

// History plays and checks one random history. It returns the number of its calls, and the number
// of calls without an answer.
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

// playHistory lets the clients play the steps of a seed.
func playHistory(tb testing.TB, s Store, share locking.Share, seed uint64) []porcupine.Operation {
	h := &story{start: time.Now()}
	var shared sharedTokens
	var wg sync.WaitGroup
	for i := range historyClients {
		d, n := s.Connect(tb)
		p := &player{loose: s.Quorum, ttl: cmp.Or(s.HistoryTTL, historyTTL), late: s.Late, share: share, story: h, tokens: &shared, driver: d, net: n, id: i, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
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

// sharedTokens is the clients' view of each other's grants.
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
