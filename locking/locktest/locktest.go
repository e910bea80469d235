package locktest

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/escapement/escapement/locking"
)

// Network is the network of one client of the store.
type Network interface {
	// Cut drops everything in both directions. Calls end by their deadlines.
	Cut()
	// CutRequests drops the client's requests. Replies under way arrive.
	CutRequests()
	// CutReplies drops replies. Requests over existing connections arrive.
	CutReplies()
	// Delay delays replies by d, in order.
	Delay(d time.Duration)
	// Heal ends all of the above.
	Heal()
	// LoseReply lets the next request reach the store and loses its reply.
	LoseReply()
}

// Store is an empty store, made for one case.
type Store struct {
	// Connect returns a new client with a network of its own, and closes it with tb.Cleanup. Required.
	Connect func(tb testing.TB) (locking.Driver, Network)

	// Forget makes the store lose all data, as FLUSHALL does. nil: it cannot lose data.
	Forget func(tb testing.TB)

	// Quorum means that a lock is held by a majority of several independent servers. Histories are
	// then checked against a looser model; see lockState in model.go.
	Quorum bool

	// Trips is how many requests an acquire of a free lock makes, one after the other; the last one takes the lock.
	// 0: 1.
	Trips int

	// HistoryTTL is the ttl of the leases in histories, whose other times are in proportion: for a store whose leases
	// have whole seconds. A multiple of 200 ms, which is the default.
	HistoryTTL time.Duration

	// Late is how much later than after its ttl a lease may lapse: at a store with sessions, until
	// a session has ended. In histories only; the cases wait until another owner has the lock. 0:
	// on time.
	Late time.Duration

	// Commands returns the number of commands of all clients so far, for Benchmark. nil: not counted.
	Commands func() int64
}

// need is a requirement of a case besides locking.Driver.
type need uint8

const (
	needsNothing     need = iota
	needsForget           // Store.Forget
	needsQueue            // a driver that is a locking.Notifier
	needsShares           // a driver that is a locking.Sharer
	needsSharedQueue      // both
)

// String names the feature that a store lacks.
func (n need) String() string {
	switch n {
	case needsForget:
		return "Store.Forget"
	case needsQueue:
		return "queues (locking.Notifier)"
	case needsShares:
		return "semaphores and read-write locks (locking.Sharer)"
	case needsSharedQueue:
		return needsShares.String() + " and " + needsQueue.String()
	case needsNothing:
	}
	return "nothing"
}

// met reports whether s has it.
func (n need) met(tb testing.TB, s Store) bool {
	switch n {
	case needsForget:
		return s.Forget != nil
	case needsQueue:
		d, _ := s.Connect(tb)
		_, ok := d.(locking.Notifier)
		return ok
	case needsShares:
		d, _ := s.Connect(tb)
		_, ok := d.(locking.Sharer)
		return ok
	case needsSharedQueue:
		return needsShares.met(tb, s) && needsQueue.met(tb, s)
	case needsNothing:
	}
	return true
}

// testCase is one requirement of a driver.
type testCase struct {
	name  string
	needs need // without it the case is left out
	run   func(tb testing.TB, s Store)
}

// allCases returns all cases.
func allCases() []testCase {
	var all []testCase
	for _, group := range [][]testCase{driverCases(), lossCases(), leaseCases(), reenterCases(), optionCases(), ownerCases(), queueCases(), allOfCases(), permitCases(), readWriteCases(), historyCases()} {
		all = append(all, group...)
	}
	return all
}

// Run runs each case against a store of its own, in real time. It logs the cases that were left out.
func Run(t *testing.T, open func(tb testing.TB) Store) {
	run(t, open, 1, func(t *testing.T, f func(t *testing.T)) { f(t) })
}

// RunParallel is Run with six cases at a time, whatever the value of -parallel, for independent
// stores. It returns when all cases have ended.
func RunParallel(t *testing.T, open func(tb testing.TB) Store) {
	const atOnce = 6
	run(t, open, atOnce, func(t *testing.T, f func(t *testing.T)) { f(t) })
}

// RunInBubble runs each case in a testing/synctest bubble, for a store whose
// clock is time.Now and whose network has no sockets.
func RunInBubble(t *testing.T, open func(tb testing.TB) Store) {
	run(t, open, 1, func(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) })
}

// run runs the cases, atOnce at a time.
func run(t *testing.T, open func(tb testing.TB) Store, atOnce int, in func(t *testing.T, f func(t *testing.T))) {
	var mu sync.Mutex
	var left []string
	play := func(c testCase) {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				s := open(t)
				if c.needs.met(t, s) {
					c.run(t, s)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				left = append(left, c.name+": needs "+c.needs.String())
			})
		})
	}
	cases := allCases()
	queue := make(chan testCase)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for c := range queue {
				play(c)
			}
		})
	}
	for _, c := range cases {
		queue <- c
	}
	close(queue)
	workers.Wait()
	if len(left) > 0 {
		t.Logf("%d of %d cases left out:\n%s", len(left), len(cases), strings.Join(left, "\n"))
	}
}
