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
	// Cut makes it silent: nothing arrives and nobody gets an error before a
	// deadline.
	Cut()
	// CutRequests is a Cut of what the client sends; what is under way back
	// arrives.
	CutRequests()
	// CutReplies is a Cut of what comes back; what is sent over connections that
	// exist arrives, and is carried out.
	CutReplies()
	// Delay makes what comes back arrive d later, in its order.
	Delay(d time.Duration)
	// Heal ends all of the above.
	Heal()
	// LoseReply lets the next request reach the store and loses its reply.
	LoseReply()
}

// Store is one empty store, made anew for each case.
type Store struct {
	// Connect returns a new client with a network of its own. Required. It
	// cleans up with tb.Cleanup.
	Connect func(tb testing.TB) (locking.Driver, Network)

	// Forget makes the store lose all it knows, as FLUSHALL does. nil says that
	// the store cannot lose anything.
	Forget func(tb testing.TB)

	// Quorum says that the store is several servers that know nothing of each other,
	// and a lock is what a majority of them says. Random histories are then checked
	// against a lock that is a little looser: see lockState in model.go.
	Quorum bool

	// Commands returns how many commands all clients together have sent so far,
	// for Benchmark. nil: nobody counts.
	Commands func() int64
}

// Need is what a case wants of a store besides locking.Driver.
type Need uint8

// What a case may need.
const (
	NeedsNothing Need = iota
	NeedsForget       // Store.Forget
	NeedsLine         // a driver that is a locking.Waker
)

// String says what a store without it lacks.
func (n Need) String() string {
	switch n {
	case NeedsForget:
		return "a store that can be made to forget (Store.Forget)"
	case NeedsLine:
		return "a line (locking.Waker)"
	case NeedsNothing:
	}
	return "nothing"
}

// Met reports whether s has what is needed.
func (n Need) Met(tb testing.TB, s Store) bool {
	switch n {
	case NeedsForget:
		return s.Forget != nil
	case NeedsLine:
		d, _ := s.Connect(tb)
		_, ok := d.(locking.Notifier)
		return ok
	case NeedsNothing:
	}
	return true
}

// Case is one demand on a driver.
type Case struct {
	Name  string
	Needs Need // where it is not met, the case says nothing
	Run   func(tb testing.TB, s Store)
}

// Cases returns all demands, for a caller that runs them in its own way.
func Cases() []Case {
	var all []Case
	for _, group := range [][]Case{driverCases(), tellCases(), leaseCases(), optionCases(), ownerCases(), lineCases(), historyCases()} {
		all = append(all, group...)
	}
	return all
}

// Run runs every case against a store of its own, in real time. It logs which
// cases the store has no use for, and why.
func Run(t *testing.T, open func(tb testing.TB) Store) {
	run(t, open, 1, func(t *testing.T, f func(t *testing.T)) { f(t) })
}

// RunParallel is Run with six cases at a time, whatever -parallel says, for
// stores that know nothing of each other: most of a case is waiting. It returns when all have ended.
func RunParallel(t *testing.T, open func(tb testing.TB) Store) {
	const atOnce = 6
	run(t, open, atOnce, func(t *testing.T, f func(t *testing.T)) { f(t) })
}

// RunInBubble runs every case in a testing/synctest bubble, for a store whose
// clock is time.Now and whose network has no sockets.
func RunInBubble(t *testing.T, open func(tb testing.TB) Store) {
	run(t, open, 1, func(t *testing.T, f func(t *testing.T)) { synctest.Test(t, f) })
}

// run runs the cases, so many at once.
func run(t *testing.T, open func(tb testing.TB) Store, atOnce int, in func(t *testing.T, f func(t *testing.T))) {
	var mu sync.Mutex
	var left []string
	play := func(c Case) {
		t.Run(c.Name, func(t *testing.T) {
			in(t, func(t *testing.T) {
				s := open(t)
				if c.Needs.Met(t, s) {
					c.Run(t, s)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				left = append(left, c.Name+": needs "+c.Needs.String())
			})
		})
	}
	cases := Cases()
	queue := make(chan Case)
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
