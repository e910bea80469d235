//go:build unix

package redislock_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

var evalCalls = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)

// handedOver lets a crowd hand a lock round, and wants each hand-over to be
// quick and to cost three calls: the release, the one who is called taking it,
// and the releaser standing in line again.
func handedOver(tb testing.TB, s scene, clients, rounds int) {
	var mu sync.Mutex
	var released time.Time
	var took []time.Duration
	round := func(l *locking.Locker) error {
		lease, err := l.Acquire(tb.Context(), lockName, locking.Options{TTL: 30 * time.Second, Wait: time.Minute})
		if err != nil {
			return err
		}
		mu.Lock()
		if !released.IsZero() {
			took = append(took, time.Since(released))
		}
		released = time.Now()
		mu.Unlock()
		return lease.Release(tb.Context())
	}
	first, _, _ := s.locker(tb)
	lease := hold(tb, first, lockName)
	var wg sync.WaitGroup
	for range clients {
		l, _, _ := s.locker(tb)
		wg.Go(func() {
			for range rounds {
				if err := round(l); err != nil {
					tb.Errorf("one of the crowd: %v", err)
					return
				}
			}
		})
	}
	await(tb, 10*time.Second, "all stand in line", func() bool {
		o, err := first.Owner(tb.Context(), lockName)
		return err == nil && o.Waiters == clients
	})
	before, begun := s.scripts(tb), time.Now()
	give(tb, lease)
	wg.Wait()
	calls, spent := s.scripts(tb)-before, time.Since(begun)

	// Whoever waits also asks by itself, twice a second at most.
	most := 3*len(took) + int(2*spent.Seconds()*float64(clients)) + clients
	slices.Sort(took)
	p50 := took[len(took)/2]
	tb.Logf("%d hand-overs among %d clients: %.2f calls each, p50 %s, p99 %s, in %s",
		len(took), clients, float64(calls)/float64(len(took)), p50, took[len(took)*99/100], spent.Round(time.Millisecond))
	if calls > most {
		tb.Errorf("%d hand-overs cost %d calls; want %d at most", len(took), calls, most)
	}
	if p50 > 150*time.Millisecond {
		tb.Errorf("half of the hand-overs took more than %s: they were not called", p50)
	}
	s.gone(tb)
}

// inTurn wants the lock to be had in the order in which they came.
func inTurn(tb testing.TB, s scene) {
	const clients, each = 3, 3
	first, _, _ := s.locker(tb)
	lease := hold(tb, first, lockName)
	var lockers []*locking.Locker
	for range clients {
		l, _, _ := s.locker(tb)
		lockers = append(lockers, l)
	}
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	for i := range clients * each {
		got := inLine(tb, lockers[i%clients], lockName, i+1)
		wg.Go(func() {
			lease := <-got
			if lease == nil {
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			if err := lease.Release(tb.Context()); err != nil {
				tb.Errorf("release: %v", err)
			}
		})
	}
	give(tb, lease)
	wg.Wait()
	if len(order) != clients*each || !slices.IsSorted(order) {
		tb.Errorf("they came in turn and had the lock in the order %v", order)
	}
	s.gone(tb)
}

// dies stands in line at a place and ends without leaving it.
func dies(tb testing.TB, s scene, place int) {
	tb.Helper()
	_, d, c := s.locker(tb)
	r := locking.Request{Name: lockName, Owner: fmt.Sprint("dead", place), TTL: 30 * time.Second, Queue: true}
	_, err := d.Acquire(tb.Context(), r)
	var held *locking.HeldError
	if !errors.As(err, &held) || held.Place != place {
		tb.Fatalf("standing in line: %v, %+v; want place %d", err, held, place)
	}
	if err := c.Close(); err != nil {
		tb.Fatal(err)
	}
}

// deadAreSkipped wants those who ended in the line to cost their patience once,
// and the time until the next asks: it is not called, being second to the dead.
func deadAreSkipped(tb testing.TB, s scene) {
	const dead = 3
	first, _, _ := s.locker(tb)
	lease := hold(tb, first, lockName)
	for i := range dead {
		dies(tb, s, i+1)
	}
	live, _, _ := s.locker(tb)
	got := inLine(tb, live, lockName, dead+1)
	begun := time.Now()
	give(tb, lease)
	if o, err := first.Owner(tb.Context(), lockName); err != nil || o.Owner != "dead1" {
		tb.Fatalf("after the release %+v, %v has the lock; want a dead one, else this proves nothing", o, err)
	}
	next := <-got
	took := time.Since(begun)
	tb.Logf("%d dead in front cost %s", dead, took.Round(time.Millisecond))
	if most := locking.Patience + askedAgain + slack; took > most {
		tb.Errorf("%d dead in front cost %s; want %s at most", dead, took, most)
	}
	give(tb, next)
	s.gone(tb)
}

// abandoned wants a line in which everybody died to vanish.
func abandoned(tb testing.TB, s scene) {
	first, _, _ := s.locker(tb)
	lease := hold(tb, first, lockName)
	dies(tb, s, 1)
	dies(tb, s, 2)
	give(tb, lease)
	if len(s.others(tb)) == 0 {
		tb.Fatal("nothing is left: this proves nothing")
	}
	s.gone(tb)
}

// lostCall breaks what a call needs while somebody waits, and wants the lock to
// be had when that one asks by itself at the latest.
func lostCall(tb testing.TB, s scene, name string, lose func(c *redis.Client)) {
	first, _, _ := s.locker(tb)
	lease := hold(tb, first, name)
	l, _, _ := s.locker(tb)
	got := inLine(tb, l, name, 1)
	await(tb, 10*time.Second, "it listens", func() bool { return slices.Max(s.ears(tb)) == 1 })
	s.masters(tb, lose)
	begun := time.Now()
	give(tb, lease)
	next := <-got
	took := time.Since(begun)
	tb.Logf("%s: had after %s", name, took.Round(time.Millisecond))
	if took > askedAgain+slack {
		tb.Errorf("a lost call cost %s; want %s at most", took, askedAgain+slack)
	}
	give(tb, next)
	s.gone(tb)
}

// TestCalls looks at those who wait in line, on one server and on a Cluster.
func TestCalls(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t)
	for name, s := range map[string]scene{"standalone": {shape: standalone(t)}, "cluster": {shape: cluster(nodes)}} {
		run := func(what string, f func(t *testing.T)) {
			t.Run(name+", "+what, func(t *testing.T) {
				s.empty(t)
				f(t)
			})
		}
		run("handed over by call", func(t *testing.T) { handedOver(t, s, 8, 50) })
		run("in turn", func(t *testing.T) { inTurn(t, s) })
		run("the dead are skipped", func(t *testing.T) { deadAreSkipped(t, s) })
		run("an abandoned line", func(t *testing.T) { abandoned(t, s) })
		run("a broken connection", func(t *testing.T) { killEars(t, s) })
		run("a forbidden channel", func(t *testing.T) { forbidChannels(t, s) })
		run("one connection", func(t *testing.T) { oneEar(t, s, false) })
		if name == "cluster" {
			run("a slot that moves", func(t *testing.T) { movedSlot(t, s, nodes) })
		}
	}
}

// slower makes the scripts more patient than they should be.
var slower = rewrite(redislock.WithPatience(int64(2*locking.Patience/time.Millisecond) + 500))

// backToFront turns the line round before each release.
func backToFront(tb testing.TB) func(c redis.UniversalClient, m *meddled) {
	return func(c redis.UniversalClient, m *meddled) {
		m.release = func() {
			line := lockKeysOf(lockName)[2]
			all := c.ZRangeWithScores(tb.Context(), line, 0, -1).Val()
			for i, z := range all {
				c.ZAdd(tb.Context(), line, redis.Z{Score: all[len(all)-1-i].Score, Member: z.Member})
			}
		}
	}
}

// TestCallsCatchMutants shows that each of them can fail.
func TestCallsCatchMutants(t *testing.T) {
	t.Parallel()
	one := standalone(t)
	listen := func(f func(<-chan struct{}) <-chan struct{}) scene {
		return scene{shape: one, meddle: func(_ redis.UniversalClient, m *meddled) { m.listen = f }}
	}
	late := func(_ redis.UniversalClient, m *meddled) {
		m.acquire = func(again bool) {
			if again {
				<-time.After(4 * time.Second)
			}
		}
	}
	for name, f := range map[string]func(tb testing.TB){
		"nobody hears the call": func(tb testing.TB) {
			// Whoever is not called asks by itself, now and then just after the lock was handed over: of some hand-overs, not of half of many.
			handedOver(tb, listen(func(<-chan struct{}) <-chan struct{} { return nil }), 4, 4)
		},
		"everybody asks all the time": func(tb testing.TB) {
			always := make(chan struct{})
			close(always)
			handedOver(tb, listen(func(<-chan struct{}) <-chan struct{} { return always }), 4, 20)
		},
		"last come, first served": func(tb testing.TB) { inTurn(tb, scene{shape: one, meddle: backToFront(tb)}) },
		"the dead are waited for": func(tb testing.TB) { deadAreSkipped(tb, scene{shape: one, rewrite: slower}) },
		"an abandoned line stays": func(tb testing.TB) { abandoned(tb, scene{shape: one, rewrite: slower}) },
		"nobody notes that there is a line": func(tb testing.TB) {
			inTurn(tb, scene{shape: one, rewrite: redislock.Changed("redis.call('HSET', state, 'q', alive)", "")})
		},
		"only the call is relied on": func(tb testing.TB) { killEars(tb, scene{shape: one, meddle: late}) },
		"a connection for each lock": func(tb testing.TB) { oneEar(tb, scene{shape: one}, true) },
	} {
		t.Run(name, func(t *testing.T) {
			one.empty(t)
			failures := observe(t, f)
			if len(failures) == 0 {
				t.Error("it passes")
			}
			t.Log(failures)
		})
	}
}
