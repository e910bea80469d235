//go:build unix

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

	"github.com/escapement/escapement/locking"
	"github.com/escapement/escapement/locking/redistest"
)

// A schedule is played twice, in bubbles of virtual time: with a recipe and with this library. The
// result is a sentence, and both sentences are wanted to the letter.

// play plays a schedule with three machines.
func play(t *testing.T, schedule func(t *testing.T, a, b, c *machine) string, old recipe, oldWant string, ours recipe, oursWant string) {
	t.Helper()
	for _, w := range []struct {
		name   string
		recipe recipe
		want   string
	}{{"the recipe", old, oldWant}, {"this library", ours, oursWant}} {
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := redistest.StartEmbedded(t)
				got := schedule(t, newMachine(t, e, "a", w.recipe), newMachine(t, e, "b", w.recipe), newMachine(t, e, "c", w.recipe))
				if got != w.want {
					t.Errorf("%s; want %s", got, w.want)
				}
			})
		})
	}
}

// inside names the machines that would go on working now.
func inside(a, b, c holding) string {
	var names []string
	for i, h := range []holding{a, b, c} {
		if h != nil && h.Valid() {
			names = append(names, "abc"[i:i+1])
		}
	}
	return "inside: " + strings.Join(names, " and ")
}

// freeAfter returns when m can have the lock, which was taken at from: m tries each second, after a
// minute each minute.
func (m *machine) freeAfter(t *testing.T, from time.Time) string {
	t.Helper()
	const most = 24 * time.Hour
	for step := time.Second; time.Since(from) < most; <-time.After(step) {
		if m.try(t) != nil {
			return "free after " + time.Since(from).String()
		}
		if time.Since(from) >= time.Minute {
			step = time.Minute
		}
	}
	return "still held after " + most.String()
}

func TestRecipeSetNX(t *testing.T) { // a
	play(t, func(t *testing.T, a, b, _ *machine) string {
		a.take(t)
		a.net.Cut() // it dies
		return b.freeAfter(t, time.Now())
	}, setNX, "still held after 24h0m0s", kept, "free after 10s")
}

// The first request of a is carried out, and that is the last of it.
func TestRecipeSetNXThenExpire(t *testing.T) { // b
	play(t, func(t *testing.T, a, b, _ *machine) string {
		asked := time.Now()
		a.net.CutReplies()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := a.recipe(ctx, a, false); err == nil || errors.Is(err, locking.ErrHeld) || b.try(t) != nil {
			t.Fatalf("a hears %v, or its request was not carried out", err)
		}
		return b.freeAfter(t, asked)
	}, setNXExpire, "still held after 24h0m0s", kept, "free after 10s")
}

func TestRecipeGetSet(t *testing.T) { // c
	t.Run("clocks", func(t *testing.T) { // the clock of b is 30 s ahead; so is Redis', from then on
		play(t, func(t *testing.T, a, b, _ *machine) string {
			b.skew = 30 * time.Second
			first := a.take(t)
			b.server.StepClock(b.skew)
			return inside(first, b.try(t), nil)
		}, getSet, "inside: a and b", notKept, "inside: a")
	})
	// The holder died. Two want its lock, a for ten seconds and b for an hour; b looks before a has written, and writes after it.
	// Then a dies, too.
	t.Run("loser", func(t *testing.T) {
		play(t, func(t *testing.T, a, b, c *machine) string {
			b.ttl = time.Hour
			c.take(t)
			c.net.Cut()
			<-time.After(recipeTTL + time.Second)
			since, looked := time.Now(), false
			b.gap = func() { looked = true; a.take(t) }
			second := b.try(t)
			if !looked { // there is no gap in this library: a is first
				b.release(t, second)
				a.take(t)
				second = b.try(t)
			}
			if second != nil {
				t.Error("a and b have the lock")
			}
			a.net.Cut()
			c.net.Heal()
			return c.freeAfter(t, since)
		}, getSet, "free after 1h0m0s", notKept, "free after 10s")
	})
	t.Run("release", func(t *testing.T) { play(t, holderOverstays, getSet, "inside: b and c", notKept, "inside: b") })
}

// holderOverstays: the time of a is over, b takes the lock, a ends and releases, c comes.
func holderOverstays(t *testing.T, a, b, c *machine) string {
	first := a.take(t)
	<-time.After(recipeTTL + time.Second)
	second := b.take(t)
	<-time.After(time.Second)
	if err := first.Release(t.Context()); err != nil && !errors.Is(err, locking.ErrLost) {
		t.Error(err)
	}
	return inside(first, second, c.try(t))
}

func TestRecipeSetPXDel(t *testing.T) { // d
	play(t, holderOverstays, setPXDel, "inside: b and c", notKept, "inside: b")
}

// The machine a gives the lock back just before its time is over, and gets the reply of Redis 700
// ms late. Meanwhile b takes the lock; then c comes.
func TestRecipeGetThenDel(t *testing.T) { // e
	play(t, func(t *testing.T, a, b, c *machine) string {
		first := a.take(t)
		<-time.After(recipeTTL - 400*time.Millisecond)
		a.net.Delay(700 * time.Millisecond)
		back := make(chan error, 1)
		go func() { back <- first.Release(t.Context()) }()
		<-time.After(500 * time.Millisecond)
		second := b.take(t)
		if err := <-back; err != nil && !errors.Is(err, locking.ErrLost) { // this library's had stopped a margin before
			t.Error(err)
		}
		return inside(first, second, c.try(t))
	}, getThenDel, "inside: b and c", notKept, "inside: b")
}

func TestRecipeRetry(t *testing.T) { // f: a reply is lost, and the command repeated
	play(t, func(t *testing.T, a, b, _ *machine) string {
		a.net.LoseReplies(1, recipeKey)
		first, second := a.try(t), b.try(t)
		if a.net.Losing() > 0 {
			t.Error("no reply was lost")
		}
		heard := map[bool]string{true: "yours", false: "taken"}
		return fmt.Sprintf("a hears %s, b hears %s; %s", heard[first != nil], heard[second != nil], inside(first, second, nil))
	}, retried, "a hears taken, b hears taken; inside: ", kept, "a hears yours, b hears taken; inside: a")
}

func TestRecipeWatchdog(t *testing.T) { // g: the holder is cut off, and b tries ten times a second
	play(t, func(t *testing.T, a, b, _ *machine) string {
		first := a.take(t)
		a.net.Cut()
		var stops, begins time.Time
		for end := time.Now().Add(recipeTTL + time.Minute); time.Now().Before(end); <-time.After(100 * time.Millisecond) {
			if stops.IsZero() && !first.Valid() {
				stops = time.Now()
			}
			if begins.IsZero() && b.try(t) != nil {
				begins = time.Now()
			}
		}
		if stops.IsZero() && !begins.IsZero() {
			return "a goes on for a minute beside b"
		}
		return fmt.Sprintf("a stops %s before b begins", begins.Sub(stops))
	}, watchdog, "a goes on for a minute beside b", kept, "a stops 1.1s before b begins")
}

// The machines a, b and c come to wait, in this order. When the lock is given back, a machine comes along that does not wait.
// Each keeps it for 50 ms.
func TestRecipePolling(t *testing.T) { // h
	play(t, func(t *testing.T, a, b, c *machine) string {
		newcomer, holder := newMachine(t, a.server, "newcomer", a.recipe), newMachine(t, a.server, "holder", a.recipe)
		before := holder.take(t)
		var mu sync.Mutex
		var had []string
		var last time.Time
		keep := func(m *machine, h holding) {
			mu.Lock()
			had, last = append(had, m.name), time.Now()
			mu.Unlock()
			<-time.After(50 * time.Millisecond)
			m.release(t, h)
		}
		var waiting sync.WaitGroup
		for _, m := range []*machine{a, b, c} {
			waiting.Go(func() {
				if h, err := m.recipe(t.Context(), m, true); err != nil {
					t.Errorf("%s waits: %v", m.name, err)
				} else {
					keep(m, h)
				}
			})
			<-time.After(300 * time.Millisecond)
		}
		<-time.After(800 * time.Millisecond)
		free := time.Now()
		holder.release(t, before)
		<-time.After(10 * time.Millisecond)
		if h := newcomer.try(t); h != nil {
			keep(newcomer, h)
		}
		waiting.Wait()
		return fmt.Sprintf("%s: the last one %s after the lock was free", strings.Join(had, ", "), last.Sub(free))
	}, setPXScript, "newcomer, b, a, c: the last one 400ms after the lock was free", kept, "a, b, c: the last one 100ms after the lock was free")
}

// Of six grants the store forgets the last three, or all; the next holder and the one before both write to a store that refuses
// smaller tokens.
func TestRecipeIncr(t *testing.T) { // i: INCR beside the lock, for a fencing token
	tokens := map[string]func(ctx context.Context, m *machine) (int64, error){
		"new holder refused, late holder accepted": func(ctx context.Context, m *machine) (int64, error) {
			return m.client.Incr(ctx, recipeKey+":token").Result()
		},
		"new holder accepted, late holder refused": func(ctx context.Context, m *machine) (int64, error) {
			l, err := m.locker.Acquire(ctx, m.lock, locking.Options{})
			if err != nil {
				return 0, err
			}
			return l.Token(), l.Release(ctx)
		},
	}
	for name, loss := range map[string]func(e *redistest.Embedded, was redistest.Snapshot){
		"failover": func(e *redistest.Embedded, was redistest.Snapshot) { e.Restore(was); e.SetRunID("of the replica") },
		"FLUSHALL": func(e *redistest.Embedded, _ redistest.Snapshot) { e.Mini().FlushAll() },
	} {
		for want, next := range tokens {
			t.Run(name+"/"+want, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					e, _ := redistest.StartEmbedded(t)
					m := newMachine(t, e, "a", notKept)
					var was redistest.Snapshot
					var late, largest int64
					write := func(token int64) string {
						if token < largest {
							return "refused"
						}
						largest = token
						return "accepted"
					}
					take := func() int64 {
						token, err := next(t.Context(), m)
						if err != nil {
							t.Fatal(err)
						}
						return token
					}
					for i := range 6 {
						if i == 3 {
							was = e.Snapshot()
						}
						late = take()
						write(late)
						<-time.After(time.Second)
					}
					loss(e, was)
					if got := fmt.Sprintf("new holder %s, late holder %s", write(take()), write(late)); got != want {
						t.Errorf("%s; want %s", got, want)
					}
				})
			})
		}
	}
}

// A lock on each node for each tick of a cron, given back when the job is done. A lock of this
// library, used so, is no better: a record of the tick is missing. The scheduler keeps one; a lease
// in the name of the tick is one for as long as its ttl. Two nodes have the job each minute; the
// clock of b is 2 s behind, and the job takes 100 ms.
func TestRecipeCron(t *testing.T) { // j
	for name, tt := range map[string]struct {
		recipe recipe
		kept   bool // the lease has the tick's name and is left to lapse
		want   int
	}{
		"the recipe":                    {setPXScript, false, 6},
		"the recipe with this library":  {kept, false, 6},
		"a lease for the tick, kept on": {notKept, true, 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := redistest.StartEmbedded(t)
				nodes := []*machine{newMachine(t, e, "a", tt.recipe), newMachine(t, e, "b", tt.recipe)}
				runs, start := 0, time.Now().Add(time.Minute)
				for tick := range 3 {
					for i, m := range nodes {
						<-time.After(time.Until(start.Add(time.Duration(tick)*time.Minute + time.Duration(2*i)*time.Second)))
						if tt.kept {
							m.lock = fmt.Sprint("report, tick ", tick)
						}
						h := m.try(t)
						if h == nil {
							continue
						}
						runs++
						<-time.After(100 * time.Millisecond)
						if !tt.kept {
							m.release(t, h)
						}
					}
				}
				if runs != tt.want {
					t.Errorf("3 ticks, %d runs; want %d", runs, tt.want)
				}
			})
		})
	}
}
