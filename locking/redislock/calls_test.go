//go:build unix

package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

const (
	lockName = "order:42"

	// slack is what a busy machine may add to a bound.
	slack = time.Second

	// askedAgain is when, at the latest, whoever stands in line asks by itself.
	askedAgain = locking.Patience / 2
)

// meddled is a driver with some of its ways changed. A nil function changes nothing.
type meddled struct {
	*redislock.Driver
	listen  func(called <-chan struct{}) <-chan struct{}
	acquire func(again bool)
	release func()

	mu    sync.Mutex
	asked map[string]bool // by owner
}

func (m *meddled) Listen(name, owner string) (<-chan struct{}, func()) {
	called, stop := m.Driver.Listen(name, owner)
	if m.listen != nil {
		called = m.listen(called)
	}
	return called, stop
}

func (m *meddled) Acquire(ctx context.Context, r locking.Request) (locking.Grant, error) {
	if m.acquire != nil {
		m.mu.Lock()
		again := m.asked[r.Owner]
		m.asked[r.Owner] = true
		m.mu.Unlock()
		m.acquire(again)
		ctx = context.WithoutCancel(ctx) // it may have taken longer than a call may
	}
	return m.Driver.Acquire(ctx, r)
}

func (m *meddled) Release(ctx context.Context, name, owner string) error {
	if m.release != nil {
		m.release()
	}
	return m.Driver.Release(ctx, name, owner)
}

// rewrite is a hook that sends other texts in place of scripts, by their digests.
type rewrite map[string]string

func (rewrite) DialHook(next redis.DialHook) redis.DialHook { return next }

func (rewrite) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (r rewrite) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		argv := cmd.Args()
		if strings.EqualFold(cmd.Name(), "evalsha") {
			if text, known := r[argv[1].(string)]; known {
				argv[0], argv[1] = "eval", text
			}
		}
		return next(ctx, cmd)
	}
}

// lockKeysOf spells the keys of a lock as doc.go does.
func lockKeysOf(name string) []string {
	lock := "{kit:lock:" + name + "}"
	return []string{lock, lock + ":token", lock + ":line", lock + ":waiters"}
}

// scene is a shape, and how the clients in it differ from what ships.
type scene struct {
	shape
	meddle  func(c redis.UniversalClient, m *meddled) // nil: they do not
	rewrite rewrite                                   // nil: nothing
	logger  *slog.Logger
}

// locker returns a locker with a client of its own.
func (s scene) locker(tb testing.TB) (*locking.Locker, *meddled, redis.UniversalClient) {
	c, _ := s.client(tb)
	if s.rewrite != nil {
		c.AddHook(s.rewrite)
	}
	d := &meddled{
		Driver: redislock.NewDriver(c, redislock.Config{Namespace: "kit", Logger: s.logger}),
		asked:  make(map[string]bool),
	}
	if s.meddle != nil {
		s.meddle(c, d)
	}
	l := locking.New(d, locking.Config{})
	tb.Cleanup(l.Close)
	return l, d, c
}

// hold takes the lock called name, for as long as the test wants.
func hold(tb testing.TB, l *locking.Locker, name string) *locking.Lease {
	tb.Helper()
	lease, err := l.Acquire(tb.Context(), name, locking.Options{TTL: 30 * time.Second})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(lease.Close)
	return lease
}

// inLine starts to wait for the lock and returns when it stands there, as the
// one with this place. The lease comes over the channel.
func inLine(tb testing.TB, l *locking.Locker, name string, place int) <-chan *locking.Lease {
	tb.Helper()
	got := make(chan *locking.Lease, 1)
	go func() { // ends with the wait
		defer close(got)
		lease, err := l.Acquire(tb.Context(), name, locking.Options{TTL: 30 * time.Second, Wait: time.Minute})
		if err != nil {
			tb.Errorf("waiting for %s: %v", name, err)
			return
		}
		got <- lease
	}()
	await(tb, 10*time.Second, fmt.Sprintf("somebody stands in line at place %d", place), func() bool {
		o, err := l.Owner(tb.Context(), name)
		return err == nil && o.Waiters == place
	})
	return got
}

func give(tb testing.TB, lease *locking.Lease) {
	tb.Helper()
	if lease == nil {
		tb.Fatal("there is no lease")
	}
	if err := lease.Release(tb.Context()); err != nil {
		tb.Fatal(err)
	}
}

// gone waits until nothing is left of the locks but their token state.
func (s scene) gone(tb testing.TB) {
	tb.Helper()
	var left []string
	defer func() {
		if len(left) > 0 {
			tb.Logf("left: %v", left)
		}
	}()
	await(tb, locking.Patience+slack, "only the token state is left", func() bool {
		left = s.others(tb)
		return len(left) == 0
	})
}

var evalCalls = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)

// scripts counts the scripts that all masters have run.
func (s scene) scripts(tb testing.TB) (n int) {
	tb.Helper()
	s.masters(tb, func(c *redis.Client) {
		info, err := c.Info(context.Background(), "commandstats").Result()
		if err != nil {
			tb.Fatal(err)
		}
		for _, m := range evalCalls.FindAllStringSubmatch(info, -1) {
			calls, _ := strconv.Atoi(m[1]) // digits
			n += calls
		}
	})
	return n
}

// ears counts the connections that listen, at each master.
func (s scene) ears(tb testing.TB) (per []int) {
	tb.Helper()
	s.masters(tb, func(c *redis.Client) {
		list, err := c.Do(context.Background(), "client", "list", "type", "pubsub").Text()
		if err != nil {
			tb.Fatal(err)
		}
		per = append(per, strings.Count(list, "id="))
	})
	return per
}

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

func killEars(tb testing.TB, s scene) {
	lostCall(tb, s, "killed", func(c *redis.Client) {
		if err := c.Do(context.Background(), "client", "kill", "type", "pubsub").Err(); err != nil {
			tb.Fatal(err)
		}
	})
}

// lines counts what a logger writes.
type lines struct {
	mu sync.Mutex
	n  int
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.n++
	return len(p), nil
}

func (l *lines) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n
}

// forbidChannels takes away the right to the channels, of those who call and of
// those who are called.
func forbidChannels(tb testing.TB, s scene) {
	acl := func(rule string) func(c *redis.Client) {
		return func(c *redis.Client) {
			if err := c.Do(context.Background(), "acl", "setuser", "default", rule).Err(); err != nil {
				tb.Errorf("acl: %v", err)
			}
		}
	}
	defer s.masters(tb, acl("allchannels"))
	var warned lines
	s.logger = slog.New(slog.NewTextHandler(&warned, nil))
	lostCall(tb, s, "forbidden", acl("resetchannels"))
	if n := warned.count(); n != 1 {
		tb.Errorf("%d warnings of one who waits; want one, not one for each try", n)
	}
}

// movedSlot moves the lock's slot while somebody waits for it, and wants the
// lock to be had soon, and calls to arrive again.
func movedSlot(tb testing.TB, s scene, c *redistest.Cluster) {
	ctx, cancel := context.WithTimeout(tb.Context(), 30*time.Second)
	defer cancel()
	key := lockKeysOf(lockName)[0]
	from, err := c.Master(ctx, key)
	if err != nil {
		tb.Fatal(err)
	}
	to := c.Servers()[slices.IndexFunc(c.Servers(), func(server *redistest.Server) bool { return server != from })]
	first, _, _ := s.locker(tb)
	lease := hold(tb, first, lockName)
	l, _, _ := s.locker(tb)
	next, later := inLine(tb, l, lockName, 1), inLine(tb, l, lockName, 2)
	await(tb, 10*time.Second, "they listen", func() bool { return slices.Max(s.ears(tb)) == 1 })
	if err := c.MoveSlot(ctx, key, to); err != nil {
		tb.Fatal(err)
	}
	begun := time.Now()
	give(tb, lease)
	lease = <-next
	took := time.Since(begun)
	if took > askedAgain+slack {
		tb.Errorf("after its slot has moved the lock was had after %s; want %s at most", took, askedAgain+slack)
	}
	direct := redis.NewClient(redistest.ClientOptions(to.Addr()))
	defer direct.Close()
	heard := await(tb, 10*time.Second, "they listen at the new master", func() bool {
		return len(direct.PubSubShardChannels(ctx, "*").Val()) == 1
	})
	begun = time.Now()
	give(tb, lease)
	lease = <-later
	called := time.Since(begun)
	if called > askedAgain/3 {
		tb.Errorf("a call from the new master took %s", called)
	}
	tb.Logf("had %s after the move, listening %s later, called in %s", took.Round(time.Millisecond), heard.Round(time.Millisecond), called)
	give(tb, lease)
	s.gone(tb)
}

// oneEar waits for many locks and wants one connection for them at each master,
// and none when nobody waits. With apart each lock has a locker of its own.
func oneEar(tb testing.TB, s scene, apart bool) {
	const locks = 30
	holder, _, _ := s.locker(tb)
	waiter, _, _ := s.locker(tb)
	var leases []*locking.Lease
	var got []<-chan *locking.Lease
	for i := range locks {
		if apart {
			waiter, _, _ = s.locker(tb)
		}
		name := fmt.Sprint("lock", i)
		leases = append(leases, hold(tb, holder, name))
		got = append(got, inLine(tb, waiter, name, 1))
	}
	await(tb, 10*time.Second, "they listen", func() bool { return slices.Min(s.ears(tb)) > 0 })
	if per := s.ears(tb); slices.Max(per) > 1 {
		tb.Errorf("%d locks waited for by one process: %v connections at the masters; want one at each", locks, per)
	}
	for i, lease := range leases {
		give(tb, lease)
		give(tb, <-got[i])
	}
	took := await(tb, 15*time.Second, "the connections end when nobody waits", func() bool { return slices.Max(s.ears(tb)) == 0 })
	tb.Logf("the last connection for calls ended %s after the last wait", took.Round(time.Millisecond))
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
			handedOver(tb, listen(func(<-chan struct{}) <-chan struct{} { return nil }), 3, 1)
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
