package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/escapement/escapement/locking"
)

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
	if err := <-back; err != nil && !errors.Is(err, locking.ErrLost) { // this library's had stopped a margin before
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
