package redlock_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/locktest"
	"github.com/escapement/escapement/locking/redistest"
)

var (
	historySeed  = flag.Uint64("histories.seed", 1, "the first of the histories that the tests of histories play")
	historyCount = flag.Int("histories", 30, "how many histories TestHistories plays, of each kind")
	historyReal  = flag.Int("histories.servers", 8, "how many histories TestHistoriesRedisServers plays, of each kind")
	historySide  = flag.Int("histories.parallel", 8, "how many of them at a time")
)

// patchy is a network of which each fault strikes some masters only, and which
// delays each by a time of its own.
type patchy struct {
	network
	rng *rand.Rand
}

func (p patchy) some(f func(*redistest.Net)) {
	struck := 1 + p.rng.IntN(1<<len(p.network)-1)
	for i, n := range p.network {
		if struck&(1<<i) != 0 {
			f(n)
		}
	}
}

func (p patchy) CutRequests() { p.some((*redistest.Net).CutRequests) }
func (p patchy) CutReplies()  { p.some((*redistest.Net).CutReplies) }
func (p patchy) LoseReply()   { p.some(func(n *redistest.Net) { n.LoseReplies(1, "eval") }) }

func (p patchy) Delay(d time.Duration) {
	p.each(func(n *redistest.Net) { n.Delay(time.Duration(p.rng.Int64N(2*int64(d) + 1))) })
}

// patchyStore is a store whose clients have such networks.
func (c cluster) patchyStore(seed uint64) locktest.Store {
	s, clients := c.store(), uint64(0)
	s.Connect = func(tb testing.TB) (locking.Driver, locktest.Network) {
		d, n := c.driver(tb)
		clients++
		return d, patchy{n, rand.New(rand.NewPCG(seed, 100+clients))}
	}
	return s
}

// TestHistories: the masters' answers together are a lock's answers, whether a client's network
// fails as one or in parts.
func TestHistories(t *testing.T) {
	play := locktest.HistoryConfig{Seed: *historySeed, Count: *historyCount, Bubble: true}
	seed := *historySeed
	for what, store := range map[string]func(c cluster) locktest.Store{
		"as one":   cluster.store,
		"in parts": func(c cluster) locktest.Store { seed++; return c.patchyStore(seed - 1) },
	} {
		t.Run(what, func(t *testing.T) {
			locktest.Histories(t, play, func(tb testing.TB) locktest.Store {
				c, _ := embedded(tb, 3)
				c.bootstrap(tb)
				return store(c)
			})
		})
	}
}

// TestHistoriesRedisServers is TestHistories in real time, several side by side.
func TestHistoriesRedisServers(t *testing.T) {
	c, _ := servers(t, 3)
	var next, calls, unanswered atomic.Int64
	var side sync.WaitGroup
	for range *historySide {
		side.Go(func() {
			for i := next.Add(1) - 1; i < int64(2**historyReal); i = next.Add(1) - 1 {
				seed := *historySeed + uint64(i/2)
				t.Run(fmt.Sprint(seed, " in parts ", i%2 == 1), func(t *testing.T) {
					c := c.named(t)
					s := c.store()
					if i%2 == 1 {
						s = c.patchyStore(seed)
					}
					n, unknown := locktest.History(t, s, seed)
					calls.Add(int64(n))
					unanswered.Add(int64(unknown))
				})
			}
		})
	}
	side.Wait()
	t.Logf("%d histories: %d calls, %d of them without an answer", 2**historyReal, calls.Load(), unanswered.Load())
}
