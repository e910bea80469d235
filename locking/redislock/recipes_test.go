package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redislock"
	"github.com/escapement/escapement/locking/redistest"
)

// The older recipes of a lock in Redis, each with a schedule on which it breaks.
// A schedule is played twice, in bubbles of virtual time: with the recipe and
// with this library. What comes of it is a sentence, and both sentences are
// wanted to the letter: so the recipe has to break in just this way, and what
// this library does is shown by a test that a broken lock fails. docs/locks.md
// tells the story.

const (
	recipeName = "stock"
	recipeKey  = "lock:stock" // part of this library's own keys, too
	recipeTTL  = 10 * time.Second
)

// holding is what a machine has of a lock that it took: a *locking.Lease, or
// what a recipe has in its place.
type holding interface {
	Valid() bool // the machine goes on working while it is true
	Release(ctx context.Context) error
}

// taking asks for the lock. The error matches locking.ErrHeld when another
// machine has it.
type taking func(ctx context.Context, wait bool) (holding, error)

// recipe is a way to take locks from a machine.
type recipe func(tb testing.TB, m *machine) taking

// machine is one who wants the lock, with a network of its own.
type machine struct {
	name   string
	lock   string // what it locks with this library
	server *redistest.Embedded
	net    *redistest.Net
	client *redis.Client
	ttl    time.Duration // what it asks for
	skew   time.Duration // of its wall clock; this library has no use for one
	gap    func()        // what happens after the machine looked and before it writes; nil: nothing
	looks  bool          // its recipe has such a gap
	take   taking
}

func (m *machine) now() time.Time { return time.Now().Add(m.skew) }

func (m *machine) between() {
	if m.gap != nil {
		m.gap()
	}
}

func newMachine(tb testing.TB, server *redistest.Embedded, name string, r recipe) *machine {
	tb.Helper()
	m := &machine{name: name, lock: recipeName, server: server, net: new(redistest.Net), ttl: recipeTTL}
	m.client = m.net.Client(server.Options())
	tb.Cleanup(func() { // go-redis dials on, each second, until it sees that the client is closed
		<-time.After(2 * time.Second)
		synctest.Wait()
	})
	tb.Cleanup(func() { _ = m.client.Close() }) // the bubble is over
	tb.Cleanup(m.net.Heal)                      // a dial that hangs would outlive the bubble
	m.take = r(tb, m)
	m.mustRelease(tb, m.must(tb)) // connections and scripts are in place then
	return m
}

func (m *machine) must(tb testing.TB) holding {
	tb.Helper()
	h, err := m.take(tb.Context(), false)
	if err != nil {
		tb.Fatalf("%s takes the lock: %v", m.name, err)
	}
	return h
}

func (m *machine) mustRelease(tb testing.TB, h holding) {
	tb.Helper()
	if err := h.Release(tb.Context()); err != nil {
		tb.Fatalf("%s gives the lock back: %v", m.name, err)
	}
}

// tries takes the lock if it is free, and wants a clear answer.
func (m *machine) tries(tb testing.TB) (holding, bool) {
	tb.Helper()
	h, err := m.take(tb.Context(), false)
	if err != nil && !errors.Is(err, locking.ErrHeld) {
		tb.Fatalf("%s tries to take the lock: %v", m.name, err)
	}
	return h, err == nil
}

// freeAfter says when m can have the lock, which was taken at from: it tries each
// second, after a minute each minute.
func (m *machine) freeAfter(tb testing.TB, from time.Time) string {
	tb.Helper()
	const most = 24 * time.Hour
	step := time.Second
	for time.Since(from) < most {
		if _, ok := m.tries(tb); ok {
			return "free after " + time.Since(from).String()
		}
		if time.Since(from) >= time.Minute {
			step = time.Minute
		}
		<-time.After(step)
	}
	return "still held after " + most.String()
}

// inside names those who would go on working now.
func inside(holdings map[string]holding) string {
	var names []string
	for _, name := range []string{"a", "b", "c"} {
		if h := holdings[name]; h != nil && h.Valid() {
			names = append(names, name)
		}
	}
	return "inside: " + strings.Join(names, " and ")
}

// three are the machines of most schedules.
func three(tb testing.TB, r recipe) (a, b, c *machine) {
	tb.Helper()
	server := embedded(tb)
	return newMachine(tb, server, "a", r), newMachine(tb, server, "b", r), newMachine(tb, server, "c", r)
}

// way is a recipe and what the schedule must come to with it.
type way struct {
	recipe recipe
	want   string
}

// play plays the schedule with the old recipe and with ours.
func play(t *testing.T, schedule func(tb testing.TB, r recipe) string, old, ours way) {
	t.Helper()
	for name, w := range map[string]way{"the recipe": old, "this library": ours} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				got := schedule(t, w.recipe)
				if got != w.want {
					t.Errorf("%s; want %s", got, w.want)
				}
				t.Log(got)
			})
		})
	}
}

// lease is this library, with the machine's ttl.
func lease(o locking.Options) recipe {
	return func(tb testing.TB, m *machine) taking {
		locker := redislock.New(m.client, redislock.Config{})
		tb.Cleanup(locker.Close)
		return func(ctx context.Context, wait bool) (holding, error) {
			o := o // of this call
			o.TTL = m.ttl
			if wait {
				o.Wait = time.Minute
			}
			l, err := locker.Acquire(ctx, m.lock, o)
			if err != nil {
				return nil, err
			}
			tb.Cleanup(l.Close)
			return l, nil
		}
	}
}

var (
	kept    = lease(locking.Options{})
	notKept = lease(locking.Options{Fixed: true}) // the recipes below keep nothing alive neither
)

// believed is the holding of a recipe: its machine goes on working until the
// time is over that it asked for, or it gave the lock back.
type believed struct {
	until time.Time // zero: it never doubts
	back  func(ctx context.Context) error
	given bool
}

func (b *believed) Valid() bool {
	return !b.given && (b.until.IsZero() || time.Now().Before(b.until))
}

func (b *believed) Release(ctx context.Context) error {
	b.given = true
	return b.back(ctx)
}

var errTaken = fmt.Errorf("%s: %w", recipeKey, locking.ErrHeld)

// answer makes errTaken of the two ways in which Redis says that a key was there.
func answer(c *redis.Cmd) error {
	n, err := c.Result()
	if errors.Is(err, redis.Nil) || n == int64(0) {
		return errTaken
	}
	return err
}

// polled waits as the recipes do: it tries again each half second.
func polled(try func(ctx context.Context) (holding, error)) taking {
	return func(ctx context.Context, wait bool) (holding, error) {
		for {
			h, err := try(ctx)
			if err == nil || !wait || !errors.Is(err, locking.ErrHeld) {
				return h, err
			}
			<-time.After(500 * time.Millisecond)
		}
	}
}

func deletes(m *machine) func(ctx context.Context) error {
	return func(ctx context.Context) error { return m.client.Do(ctx, "DEL", recipeKey).Err() }
}

// setNX is recipe a: SETNX and DEL.
func setNX(_ testing.TB, m *machine) taking {
	return polled(func(ctx context.Context) (holding, error) {
		if err := answer(m.client.Do(ctx, "SETNX", recipeKey, m.name)); err != nil {
			return nil, err
		}
		return &believed{back: deletes(m)}, nil
	})
}

// setNXExpire is recipe b: the expiry comes with a second command.
func setNXExpire(_ testing.TB, m *machine) taking {
	return polled(func(ctx context.Context) (holding, error) {
		until := time.Now().Add(m.ttl)
		if err := answer(m.client.Do(ctx, "SETNX", recipeKey, m.name)); err != nil {
			return nil, err
		}
		if err := m.client.Do(ctx, "PEXPIRE", recipeKey, m.ttl.Milliseconds()).Err(); err != nil {
			return nil, err
		}
		return &believed{until: until, back: deletes(m)}, nil
	})
}

// getSet is recipe c: the value says when the lock ends, by the clock of whoever
// wrote it, and who finds it ended writes its own with GETSET.
func getSet(_ testing.TB, m *machine) taking {
	m.looks = true
	return polled(func(ctx context.Context) (holding, error) {
		until := m.now().Add(m.ttl)
		ended := func(ms int64) bool { return ms <= m.now().UnixMilli() }
		mine := &believed{until: time.Now().Add(m.ttl), back: deletes(m)}
		err := answer(m.client.Do(ctx, "SETNX", recipeKey, until.UnixMilli()))
		if !errors.Is(err, locking.ErrHeld) {
			return mine, err
		}
		seen, err := m.client.Get(ctx, recipeKey).Int64()
		if err != nil {
			return nil, err
		}
		if !ended(seen) {
			return nil, errTaken
		}
		m.between()
		was, err := m.client.Do(ctx, "GETSET", recipeKey, until.UnixMilli()).Int64()
		if err != nil {
			return nil, err
		}
		if !ended(was) {
			return nil, errTaken // somebody was faster; its value is written over
		}
		return mine, nil
	})
}

// setPX takes the lock as the better recipes do, and gives it back in some way.
func setPX(back func(m *machine, value string) func(ctx context.Context) error) recipe {
	return func(_ testing.TB, m *machine) taking {
		taken := 0
		return polled(func(ctx context.Context) (holding, error) {
			taken++
			until, value := time.Now().Add(m.ttl), fmt.Sprint(m.name, taken)
			if err := answer(m.client.Do(ctx, "SET", recipeKey, value, "NX", "PX", m.ttl.Milliseconds())); err != nil {
				return nil, err
			}
			return &believed{until: until, back: back(m, value)}, nil
		})
	}
}

// setPXDel is recipe d: SET NX PX and DEL.
var setPXDel = setPX(func(m *machine, _ string) func(ctx context.Context) error { return deletes(m) })

// getThenDel is recipe e: it looks whose the lock is, and then deletes it.
var getThenDel = setPX(func(m *machine, value string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		if now, err := m.client.Get(ctx, recipeKey).Result(); err != nil || now != value {
			return err
		}
		return deletes(m)(ctx)
	}
})

// setPXScript looks and deletes in one script: the recipe of f, g, h and j.
var setPXScript = setPX(func(m *machine, value string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		return freeRaw.Run(ctx, m.client, []string{recipeKey}, value).Err()
	}
})

// retried is recipe f: the same over a client that repeats commands by itself,
// as go-redis does unless it is told not to.
func retried(tb testing.TB, m *machine) taking {
	o := m.server.Options()
	o.MaxRetries = 3
	again := *m
	again.client = m.net.Client(o)
	tb.Cleanup(func() { _ = again.client.Close() })
	return setPXScript(tb, &again)
}

// renewRaw keeps a key that has this value.
var renewRaw = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`)

// watched is recipe g: a goroutine keeps the lock alive. It tries again after an
// error, ends when the lock is another's, and tells nobody.
func watched(tb testing.TB, m *machine) taking {
	return polled(func(ctx context.Context) (holding, error) {
		value := fmt.Sprint(m.name, time.Now().UnixNano())
		if err := answer(m.client.Do(ctx, "SET", recipeKey, value, "NX", "PX", m.ttl.Milliseconds())); err != nil {
			return nil, err
		}
		keeping, stop := context.WithCancel(tb.Context())
		done := make(chan struct{})
		go func() { // ends when stop is called or the lock is another's
			defer close(done)
			for {
				select {
				case <-time.After(m.ttl / 3):
				case <-keeping.Done():
					return
				}
				n, err := renewRaw.Run(keeping, m.client, []string{recipeKey}, value, m.ttl.Milliseconds()).Int()
				if err == nil && n == 0 {
					return
				}
			}
		}()
		end := func() { stop(); <-done }
		tb.Cleanup(end)
		return &believed{back: func(ctx context.Context) error {
			end()
			return freeRaw.Run(ctx, m.client, []string{recipeKey}, value).Err()
		}}, nil
	})
}

// a. SETNX without an expiry.
func TestRecipeSetNX(t *testing.T) {
	play(t, holderDies,
		way{setNX, "still held after 24h0m0s"},
		way{kept, "free after 10s"})
}

func holderDies(tb testing.TB, r recipe) string {
	a, b, _ := three(tb, r)
	a.must(tb)
	a.net.Cut()
	return b.freeAfter(tb, time.Now())
}

// b. SETNX, then EXPIRE.
func TestRecipeSetNXThenExpire(t *testing.T) {
	play(t, holderDiesHalfway,
		way{setNXExpire, "still held after 24h0m0s"},
		way{kept, "free after 10s"})
}

// holderDiesHalfway: the first request of a is carried out, and that is the last
// of it.
func holderDiesHalfway(tb testing.TB, r recipe) string {
	a, b, _ := three(tb, r)
	asked := time.Now()
	a.net.CutReplies()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Second)
	defer cancel()
	if _, err := a.take(ctx, false); err == nil || errors.Is(err, locking.ErrHeld) {
		tb.Fatalf("a hears %v", err)
	}
	if _, ok := b.tries(tb); ok {
		tb.Fatal("the request of a was not carried out")
	}
	return b.freeAfter(tb, asked)
}

// c. SETNX, GET, GETSET, with the end of the lock in its value.
func TestRecipeGetSet(t *testing.T) {
	t.Run("clocks", func(t *testing.T) {
		play(t, clocksDiffer,
			way{getSet, "inside: a and b"},
			way{notKept, "inside: a"})
	})
	t.Run("loser", func(t *testing.T) {
		play(t, loserWrites,
			way{getSet, "free after 1h0m0s"},
			way{notKept, "free after 10s"})
	})
	t.Run("release", func(t *testing.T) {
		play(t, holderOverstays,
			way{getSet, "inside: b and c"},
			way{notKept, "inside: b"})
	})
}

// clocksDiffer: the clock of b is 30 s ahead; so is Redis', from then on.
func clocksDiffer(tb testing.TB, r recipe) string {
	a, b, _ := three(tb, r)
	b.skew = 30 * time.Second
	first := a.must(tb)
	b.server.StepClock(b.skew)
	second, _ := b.tries(tb)
	return inside(map[string]holding{"a": first, "b": second})
}

// loserWrites: the holder died. Two want its lock, a for ten seconds and b for an
// hour; b looks before a has written, and writes after it. Then a dies, too.
func loserWrites(tb testing.TB, r recipe) string {
	a, b, c := three(tb, r)
	b.ttl = time.Hour
	c.must(tb)
	c.net.Cut()
	<-time.After(recipeTTL + time.Second)
	b.gap = func() { a.must(tb) }
	since := time.Now()
	if !b.looks {
		b.gap()
	}
	if _, ok := b.tries(tb); ok {
		tb.Error("a and b have the lock")
	}
	a.net.Cut()
	c.net.Heal()
	return c.freeAfter(tb, since)
}

// holderOverstays: the time of a is over, b takes the lock, a ends and gives back
// what it had, c comes.
func holderOverstays(tb testing.TB, r recipe) string {
	a, b, c := three(tb, r)
	first := a.must(tb)
	<-time.After(recipeTTL + time.Second)
	second := b.must(tb)
	<-time.After(time.Second)
	if err := first.Release(tb.Context()); err != nil && !errors.Is(err, locking.ErrLost) {
		tb.Error(err)
	}
	third, _ := c.tries(tb)
	return inside(map[string]holding{"a": first, "b": second, "c": third})
}

// d. SET NX PX, and DEL by whoever ends.
func TestRecipeSetPXDel(t *testing.T) {
	play(t, holderOverstays,
		way{setPXDel, "inside: b and c"},
		way{notKept, "inside: b"})
}

// e. The owner is looked at with GET, and then comes DEL.
func TestRecipeGetThenDel(t *testing.T) {
	play(t, releaseIsSlow,
		way{getThenDel, "inside: b and c"},
		way{notKept, "inside: b"})
}

// releaseIsSlow: a gives the lock back just before its time is over, and hears
// from Redis 700 ms late. Meanwhile b takes the lock; then c comes.
func releaseIsSlow(tb testing.TB, r recipe) string {
	a, b, c := three(tb, r)
	first := a.must(tb)
	<-time.After(recipeTTL - 400*time.Millisecond)
	a.net.Delay(700 * time.Millisecond)
	back := make(chan error, 1)
	go func() { back <- first.Release(tb.Context()) }() // ends with the call
	<-time.After(500 * time.Millisecond)
	second := b.must(tb)
	if err := <-back; err != nil {
		tb.Error(err)
	}
	third, _ := c.tries(tb)
	return inside(map[string]holding{"a": first, "b": second, "c": third})
}

// f. A command whose reply was lost is repeated.
func TestRecipeRetry(t *testing.T) {
	play(t, replyIsLost,
		way{retried, "a hears taken, b hears taken; inside: "},
		way{kept, "a hears yours, b hears taken; inside: a"})
}

func replyIsLost(tb testing.TB, r recipe) string {
	a, b, _ := three(tb, r)
	a.net.LoseReplies(1, recipeKey)
	first, mine := a.tries(tb)
	if a.net.Losing() > 0 {
		tb.Error("no reply was lost")
	}
	second, its := b.tries(tb)
	heard := map[bool]string{true: "yours", false: "taken"}
	return fmt.Sprintf("a hears %s, b hears %s; %s", heard[mine], heard[its], inside(map[string]holding{"a": first, "b": second}))
}

// g. A goroutine keeps the lock alive, and nobody hears that it could not.
func TestRecipeWatchdog(t *testing.T) {
	play(t, holderIsCutOff,
		way{watched, "a goes on for a minute beside b"},
		way{kept, "a stops 1.1s before b begins"})
}

// holderIsCutOff: b asks ten times a second.
func holderIsCutOff(tb testing.TB, r recipe) string {
	a, b, _ := three(tb, r)
	first := a.must(tb)
	a.net.Cut()
	var stops, begins time.Time
	for end := time.Now().Add(recipeTTL + time.Minute); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
		if stops.IsZero() && !first.Valid() {
			stops = time.Now()
		}
		if begins.IsZero() {
			if _, ok := b.tries(tb); ok {
				begins = time.Now()
			}
		}
	}
	switch {
	case begins.IsZero():
		return "b never begins"
	case stops.IsZero():
		return "a goes on for a minute beside b"
	}
	return fmt.Sprintf("a stops %s before b begins", begins.Sub(stops))
}

// h. Whoever waits asks again and again.
func TestRecipePolling(t *testing.T) {
	play(t, threeWait,
		way{setPXScript, "passer-by, b, a, c: the last one 400ms after the lock was free"},
		way{kept, "a, b, c: the last one 100ms after the lock was free"})
}

// threeWait: a, b and c come to wait, in this order. When the lock is given back,
// somebody comes along who does not wait. Each keeps it for 50 ms.
func threeWait(tb testing.TB, r recipe) string {
	a, b, c := three(tb, r)
	passer := newMachine(tb, a.server, "passer-by", r)
	holder := newMachine(tb, a.server, "holder", r)
	before := holder.must(tb)

	var mu sync.Mutex
	var had []string
	var last time.Time
	keep := func(m *machine, h holding) {
		mu.Lock()
		had, last = append(had, m.name), time.Now()
		mu.Unlock()
		<-time.After(50 * time.Millisecond)
		m.mustRelease(tb, h)
	}
	var waiting sync.WaitGroup
	for _, m := range []*machine{a, b, c} {
		waiting.Go(func() {
			h, err := m.take(tb.Context(), true)
			if err != nil {
				tb.Errorf("%s waits: %v", m.name, err)
				return
			}
			keep(m, h)
		})
		<-time.After(300 * time.Millisecond)
	}
	<-time.After(800 * time.Millisecond)
	free := time.Now()
	holder.mustRelease(tb, before)
	<-time.After(10 * time.Millisecond)
	if h, ok := passer.tries(tb); ok {
		keep(passer, h)
	}
	waiting.Wait()
	return fmt.Sprintf("%s: the last one %s after the lock was free", strings.Join(had, ", "), last.Sub(free))
}

// token is what a holder shows to whoever stores its writes.
type token func(tb testing.TB, m *machine) int64

// counted is recipe i: INCR beside the lock.
func counted(tb testing.TB, m *machine) int64 {
	n, err := m.client.Incr(tb.Context(), recipeKey+":token").Result()
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// granted is the token of a lease.
func granted(tb testing.TB, m *machine) int64 {
	h := m.must(tb)
	defer m.mustRelease(tb, h)
	return h.(*locking.Lease).Token()
}

// i. INCR for a fencing token.
func TestRecipeIncr(t *testing.T) {
	failover := func(e *redistest.Embedded, was redistest.Snapshot) {
		e.Restore(was)
		e.SetRunID("of the replica")
	}
	flush := func(e *redistest.Embedded, _ redistest.Snapshot) { e.Mini().FlushAll() }
	for name, loss := range map[string]func(e *redistest.Embedded, was redistest.Snapshot){"failover": failover, "FLUSHALL": flush} {
		t.Run(name, func(t *testing.T) {
			for way, tt := range map[string]struct {
				next token
				want string
			}{
				"the recipe":   {counted, "new holder refused, late holder accepted"},
				"this library": {granted, "new holder accepted, late holder refused"},
			} {
				t.Run(way, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						if got := tokensAreLost(t, tt.next, loss); got != tt.want {
							t.Errorf("%s; want %s", got, tt.want)
						}
					})
				})
			}
		})
	}
}

// tokensAreLost: of six grants the store forgets the last three, or all; the next
// holder and the one before both write to a store that refuses smaller tokens.
func tokensAreLost(tb testing.TB, next token, loss func(e *redistest.Embedded, was redistest.Snapshot)) string {
	server := embedded(tb)
	m := newMachine(tb, server, "a", notKept)
	var was redistest.Snapshot
	var late, largest int64
	write := func(token int64) string {
		if token < largest {
			return "refused"
		}
		largest = token
		return "accepted"
	}
	for i := range 6 {
		if i == 3 {
			was = server.Snapshot()
		}
		late = next(tb, m)
		write(late)
		<-time.After(time.Second)
	}
	loss(server, was)
	first := write(next(tb, m))
	return fmt.Sprintf("new holder %s, late holder %s", first, write(late))
}

// j. A lock on each node for each tick of a cron, given back when the job is done.
// A lock of this library, used so, is no better: what is wanted is that somebody
// remembers the tick. The scheduler does; a lease in the name of the tick does it
// for as long as its ttl.
func TestRecipeCron(t *testing.T) {
	nameless := func(int) string { return recipeName }
	perTick := func(tick int) string { return fmt.Sprint("report, tick ", tick) }
	leave := func(_ context.Context, h holding) error { h.(*locking.Lease).Close(); return nil }
	for name, tt := range map[string]struct {
		recipe recipe
		lock   func(tick int) string
		end    func(ctx context.Context, h holding) error
		want   string
	}{
		"the recipe":                    {setPXScript, nameless, releases, "3 ticks, 6 runs"},
		"the recipe with this library":  {kept, nameless, releases, "3 ticks, 6 runs"},
		"a lease for the tick, kept on": {notKept, perTick, leave, "3 ticks, 3 runs"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if got := twoNodes(t, tt.recipe, tt.lock, tt.end); got != tt.want {
					t.Errorf("%s; want %s", got, tt.want)
				}
			})
		})
	}
}

func releases(ctx context.Context, h holding) error { return h.Release(ctx) }

// twoNodes: both have the job each minute; the clock of b is 2 s behind, and the
// job takes 100 ms.
func twoNodes(tb testing.TB, r recipe, lock func(tick int) string, end func(ctx context.Context, h holding) error) string {
	server := embedded(tb)
	a, b := newMachine(tb, server, "a", r), newMachine(tb, server, "b", r)
	b.skew = -2 * time.Second
	start := time.Now().Add(time.Minute)
	runs := 0
	const ticks = 3
	for tick := range ticks {
		due := start.Add(time.Duration(tick) * time.Minute)
		for _, m := range []*machine{a, b} {
			<-time.After(due.Sub(m.now()))
			m.lock = lock(tick)
			h, ok := m.tries(tb)
			if !ok {
				continue
			}
			runs++
			<-time.After(100 * time.Millisecond)
			if err := end(tb.Context(), h); err != nil {
				tb.Error(err)
			}
		}
	}
	return fmt.Sprintf("%d ticks, %d runs", ticks, runs)
}
